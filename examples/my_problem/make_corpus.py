"""Writes the example's corpus of written and spoken dates, for `python make_corpus.py > dates.tsv`."""

import datetime
import random

PAIRS = 12_000
FIRST_DAY, LAST_DAY = datetime.date(1800, 1, 1), datetime.date(2099, 12, 31)
SPELLINGS = ("{0.day} {0:%B} {0.year}", "{0:%Y-%m-%d}", "{0:%d/%m/%Y}")

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
    "twenty": "twentieth",
    "thirty": "thirtieth",
}


def number(n: int) -> str:
    """Returns a number below 100 in words."""
    if n < len(ONES):
        return ONES[n]
    tens, ones = TENS[n // 10 - 2], n % 10
    return f"{tens}-{ONES[ones]}" if ones else tens


def ordinal(n: int) -> str:
    """Returns the ordinal of a day in words: 21 is "twenty-first"."""
    head, hyphen, last = number(n).rpartition("-")
    return head + hyphen + ORDINALS.get(last, last + "th")


def year(n: int) -> str:
    """Returns a year as it is spoken, with the exceptions for which a table of words would not suffice."""
    century, rest = divmod(n, 100)
    if n == 2000:
        return "two thousand"
    if 2000 < n < 2010:
        return f"two thousand and {number(rest)}"
    if rest == 0:
        return f"{number(century)} hundred"
    return f"{number(century)} oh {number(rest)}" if rest < 10 else f"{number(century)} {number(rest)}"


def spoken(day: datetime.date) -> str:
    """Returns a date as it is spoken."""
    return f"the {ordinal(day.day)} of {day:%B} {year(day.year)}"


def main() -> None:
    """Prints the corpus, which is always the same."""
    draw = random.Random(1)
    # No day occurs twice, so that no tested day occurs in training, in any spelling.
    days = draw.sample(range(FIRST_DAY.toordinal(), LAST_DAY.toordinal() + 1), PAIRS)
    print("# A date as it is written, a tab, and as it is said.")
    for day in map(datetime.date.fromordinal, days):
        print(draw.choice(SPELLINGS).format(day), spoken(day), sep="\t")


if __name__ == "__main__":
    main()
