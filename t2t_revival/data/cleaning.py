"""Cleaning of training pairs (`--clean`): a table of rules, each of which drops pairs of the train split.

The rules are applied in their order, and a pair is counted for the first one that drops it. The result is a
file with one byte for each pair: the number of that rule, from 1, or `KEPT`. All that reads train, in any
process, drops by this file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from t2t_revival.data.base_source import TRAIN, Row, Source
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import write_whole, writing

MAX_LENGTH = 1000  # of a side; see `_length`
MAX_RATIO = 3  # of the longer side's length to the shorter one's
RATIO_LENGTH = 30  # of the longer side, above which the ratio counts: short sentences differ more
MIN_LETTERS = 0.5  # share of a side's characters, spaces left out
WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+")
WIDE_LENGTH = 3  # of a Chinese, Japanese or Korean character, which stands for a word or a syllable
# Control characters, and what replaces bytes that are no text.
NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]")
# Characters recognised when their UTF-8 was read as Windows-1252, as ü in "Ã¼". Left out are those that then
# are a capital letter before dots, a closing quotation mark or a dash, which can be correct.
MISREAD = (
    {chr(code) for code in range(0xA0, 0x100)}.difference("ÅÒÔû\xd7")
    | set("ćęěłńňřšśťůźżž€™\ufeff\ufffd")
    | {chr(code) for code in range(0x430, 0x444)}  # Cyrillic small letters
)
MISREADINGS = sorted(character.encode().decode("cp1252", "replace") for character in MISREAD)
MISREAD_TEXT = re.compile("|".join([*MISREADINGS, "â€"]))  # the last is all quotation marks, dashes and dots

KEPT = 0
SAMPLES = 20  # pairs of each rule in the sample
SAMPLE_LENGTH = 300  # characters of a side in the sample
BLOCK = 1000  # pairs between two reports of progress
# Two different ones among 50 million pairs have equal hashes with a probability of 1 in 15,000.
HASH_BYTES = 8
PARTS = 16  # in which hashes are compared
FREE_SPACE = "free disk space and start again"


def has_empty_side(source: str, target: str) -> bool:
    """Returns whether a side is empty or blank, so that a pair is never an example, cleaned or not."""
    return not (source.strip() and target.strip())


def _is_broken(source: str, target: str) -> bool:
    sides = (source, target)
    return any(map(NO_TEXT.search, sides)) or any(
        not side.isascii() and MISREAD_TEXT.search(side) for side in sides
    )


def _length(side: str) -> int:
    """Counts characters, a wide one as several, so that lengths of different scripts can be compared."""
    return len(side) + (WIDE_LENGTH - 1) * sum(map(len, () if side.isascii() else WIDE.findall(side)))


def _few_letters(side: str) -> bool:
    """Returns whether few characters are letters, vowel signs as Hindi's among them, spaces left out."""
    words = side.split()
    enough = MIN_LETTERS * sum(map(len, words))
    if sum(len(word) for word in words if word.isalpha()) >= enough:  # as in usual text; faster than below
        return False
    return sum(unicodedata.category(character)[0] in "LM" for character in side) < enough


class Rule(NamedTuple):
    """A rule: its name, a description of the pairs that it drops, and the test of a pair."""

    name: str
    drops: str
    test: Callable[[str, str], bool] | None  # `None` compares all pairs


RULES = (
    Rule("empty side", "a side is empty or blank", has_empty_side),
    Rule("broken text", "control characters, U+FFFD, or UTF-8 that was read as Windows-1252", _is_broken),
    Rule(
        "equal sides",
        "source and target are the same text",
        lambda source, target: source.strip() == target.strip(),
    ),
    Rule(
        "long side",
        f"a side is longer than {MAX_LENGTH:,} characters",
        lambda *sides: max(map(_length, sides)) > MAX_LENGTH,
    ),
    Rule(
        "uneven",
        f"one side has over {RATIO_LENGTH} characters and {MAX_RATIO} times the other's",
        lambda *sides: (two := sorted(map(_length, sides)))[1] > max(RATIO_LENGTH, MAX_RATIO * two[0]),
    ),
    Rule(
        "few letters",
        f"less than {MIN_LETTERS:.0%} of a side's characters are letters",
        lambda *sides: any(map(_few_letters, sides)),
    ),
    Rule("duplicate", "an earlier pair has the same source and target", None),
)
DUPLICATE = len(RULES)


def count_dropped(numbers: bytes | bytearray) -> dict[str, int]:
    """Returns the number of pairs that each rule has dropped, from the numbers of their rules."""
    found = {rule.name: numbers.count(number) for number, rule in enumerate(RULES, start=1)}
    return {name: count for name, count in found.items() if count}


def rule_numbers(file: Path, start: int, stop: int) -> bytes:
    """Reads the rules of the pairs number `start` up to `stop` of train."""
    with file.open("rb") as content:
        content.seek(start)
        return content.read(stop - start)


def apply_rules(source: Source, pairs: int, file: Path, on_pairs: Callable[[int, int], None]) -> None:
    """Writes the number of the rule that drops each pair of train, or `KEPT`.

    Duplicates are found by hashes in memory, which take 16 bytes for each pair.

    Args:
        source: has the pairs.
        pairs: their number.
        file: where the numbers are written.
        on_pairs: called with the number of pairs done and `pairs`.

    Raises:
        T2TError: the source cannot be read, `file` cannot be written, or all pairs are dropped.
    """
    import numpy as np

    numbers, hashes = bytearray(), bytearray()
    rows = source.rows(TRAIN, 0, pairs)
    while block := [row[:2] for row in islice(rows, BLOCK)]:
        numbers += bytes(_first_rule(*pair) for pair in block)
        lines = ("\n".join(pair).encode() for pair in block)
        hashes += b"".join(blake2b(line, digest_size=HASH_BYTES).digest() for line in lines)
        on_pairs(len(numbers), pairs)
    rules, parts = np.frombuffer(numbers, np.uint8), np.frombuffer(hashes, np.uint8)[::HASH_BYTES] % PARTS
    for part in range(PARTS):
        compared = np.flatnonzero((parts == part) & (rules == DUPLICATE))
        _, firsts = np.unique(np.frombuffer(hashes, np.uint64)[compared], return_index=True)
        rules[compared[firsts]] = KEPT
    if KEPT not in numbers:
        dropped = ", ".join(f"{name} {count:,}" for name, count in count_dropped(numbers).items())
        raise T2TError(
            f"{source.name}: --clean drops all pairs of train ({dropped}); give other pairs, or no --clean"
        )
    with writing(file, FREE_SPACE):
        write_whole(file, numbers)


def _first_rule(source: str, target: str) -> int:
    """Returns the number of the first rule that drops a pair; without one, DUPLICATE until it is compared."""
    tests = (number for number, rule in enumerate(RULES, start=1) if rule.test and rule.test(source, target))
    return next(tests, DUPLICATE)


def passes_rules(row: Row) -> bool:
    """Returns whether a row passes all rules but the comparison of duplicates."""
    return _first_rule(row.source, row.target) == DUPLICATE


def write_sample(rows: Callable[[str, int, int], Iterator[Row]], rules: Path, file: Path) -> None:
    """Writes the first pairs that each rule drops, as lines RULE<TAB>SOURCE<TAB>TARGET.

    Args:
        rows: called with a split and a range; yields the rows of its pairs, see `Source.rows`.
        rules: what `apply_rules` has written.
        file: where the lines are written; sides are cut after `SAMPLE_LENGTH` characters.

    Raises:
        T2TError: the source cannot be read, or `file` cannot be written.
    """
    numbers = rules.read_bytes()
    lines = []
    for number, rule in enumerate(RULES, start=1):
        position = -1
        for _ in range(min(SAMPLES, numbers.count(number))):
            position = numbers.find(number, position + 1)
            for row in rows(TRAIN, position, position + 1):
                sides = (side[:SAMPLE_LENGTH].replace("\t", " ") for side in row[:2])
                lines.append("\t".join((rule.name, *sides)) + "\n")
    with writing(file, FREE_SPACE):
        write_whole(file, "".join(lines).encode())
