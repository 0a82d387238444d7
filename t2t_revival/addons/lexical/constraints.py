"""Lexical constraints of lines: phrases that an output must have, and words that it must not have."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations
from typing import Any, NamedTuple

from t2t_revival.addons.lexical.phrases import Spelling, joins
from t2t_revival.addons.lexical.tables import LineAutomata, Unit
from t2t_revival.data.vocabulary.spans import UNSPACED
from t2t_revival.decoding.lines.preprocessor import LINE_ENDS
from t2t_revival.errors import LineError, T2TError
from t2t_revival.utils.texts import items_of, shown, texts_of
from t2t_revival.utils.unicode_forms import composed, normalized

MERGEABLE = 16  # phrases of a line that share words where there is too little room: all pairs are tried


class Term(NamedTuple):
    """A phrase of constraints that is to translate a term of the line.

    Attributes:
        source: the term, as the line has it.
        phrase: its translation.
        start: place of the term's first character in the line.
    """

    source: str
    phrase: str
    start: int

    @property
    def end(self) -> int:
        """The place after the term's last character."""
        return self.start + len(self.source)

    @property
    def has_words(self) -> bool:
        """True if both sides are of scripts with spaces between words."""
        return not UNSPACED.search(self.source + self.phrase)


@dataclass(frozen=True)
class LineConstraints:
    """Phrases of an output, as whole words and as they are written.

    Attributes:
        phrases: an output must have each of them, as often as it is given.
        avoid: an output must have none of them.
        terms: what some of the phrases are to translate; see `Terminology.constraints`.

    Raises:
        T2TError: phrases or avoid is no list of strings.

    Example:
        translator.nbest(["The dog sleeps."], constraints=[LineConstraints(("Dackel",), avoid=("Hund",))])
    """

    phrases: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        for name in ("phrases", "avoid"):
            object.__setattr__(self, name, tuple(texts_of(getattr(self, name), name)))

    def __bool__(self) -> bool:
        return bool(self.phrases or self.avoid)

    def missing(self, text: str) -> tuple[str, ...]:
        """Returns the phrases that an output lacks, each as often as it lacks it."""
        wanted = Counter(self.phrases)
        lacking = ((phrase, number - count(phrase, text)) for phrase, number in wanted.items())
        return tuple(phrase for phrase, number in lacking for _ in range(number))

    def present(self, text: str) -> tuple[str, ...]:
        """Returns the avoided phrases that an output has."""
        return tuple(phrase for phrase in dict.fromkeys(self.avoid) if count(phrase, text))


def constraints_of(constraints: Any, lines: int, first_line: int) -> dict[int, LineConstraints]:
    """Returns the constraints of the lines that have some, by index, `checked`.

    Args:
        constraints: `LineConstraints` or `None` for each line, from Python code.
        lines: their number.
        first_line: number of the first line, for errors.

    Raises:
        T2TError: the values are no list, one of them is of another type, or there are more or fewer than
            lines; or as `checked`.
    """
    given = items_of(constraints, "constraints")
    for number, one in enumerate(given, first_line):
        if not (one is None or isinstance(one, LineConstraints)):
            raise LineError(number, f"constraints: {shown(one)} is not LineConstraints or None")
    if any(given) and len(given) != lines:
        raise T2TError(f"{len(given)} constraints for {lines} lines: give one for each, or None")
    return {index: checked(one, first_line + index) for index, one in enumerate(given) if one}


def checked(constraints: LineConstraints, number: int) -> LineConstraints:
    """Returns the constraints of a line, by its number, in NFC, without line ends and spaces around phrases.

    Raises:
        LineError: a phrase is empty, or has an avoided one.
    """

    def cleaned(phrases: Iterable[str]) -> tuple[str, ...]:
        return tuple(normalized(phrase.translate(LINE_ENDS).strip()) for phrase in phrases)

    phrases = cleaned(term.phrase for term in constraints.terms)
    terms = (one._replace(phrase=phrase) for one, phrase in zip(constraints.terms, phrases, strict=True))
    constraints = LineConstraints(cleaned(constraints.phrases), cleaned(constraints.avoid), tuple(terms))
    if not all((*constraints.phrases, *constraints.avoid)):
        raise LineError(number, "a phrase of the constraints is empty: leave it out")
    for phrase in constraints.phrases:
        for avoided in constraints.present(phrase):
            fault = f"the phrase {phrase!r} has {avoided!r}, which is to be avoided: choose one"
            raise LineError(number, fault)
    return constraints


def united(phrases: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Returns phrases of two lists; one that both have is there as often as in the list with more of it."""
    return tuple((Counter(phrases) | Counter(others)).elements())


def count(phrase: str, text: str) -> int:
    """Returns how often a text has a phrase as whole words."""
    return sum(1 for _ in occurrences(phrase, text))


def occurrences(phrase: str, text: str) -> Iterator[tuple[int, int]]:
    """Yields the beginnings and ends of a phrase's occurrences in a text as whole words, both in NFC."""
    found, places = composed(text)
    return ((places[begin], places[end]) for begin, end in spans(_pattern(phrase), found))


@lru_cache(2**14)
def _pattern(phrase: str) -> re.Pattern[str]:
    return re.compile(re.escape(normalized(phrase)))


def spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yields the beginnings and ends of a pattern's matches that are whole words, from left to right.

    Scripts without spaces have no limits of words.
    """
    start = 0
    while match := pattern.search(text, start):
        begin, end = match.span()
        is_whole = not (is_inside(text, begin) or is_inside(text, end))
        start = end if is_whole else begin + 1
        if is_whole:
            yield begin, end


def is_inside(text: str, place: int) -> bool:
    """Returns whether a place of a text is inside a word."""
    return 0 < place < len(text) and joins(text[place - 1]) and joins(text[place])


def units_of(constraints: LineConstraints, spelling: Spelling) -> list[Unit]:
    """Spells the phrases of a line.

    Raises:
        T2TError: the vocabulary cannot spell one of them.
    """
    wanted = Counter(constraints.phrases)
    for phrase in constraints.avoid:
        wanted.setdefault(phrase, 0)
    units = []
    for phrase, number in wanted.items():
        forms = spelling.forms(phrase)
        units.append(Unit(forms if number else tuple(map(spelling.lattice, forms)), number, phrase))
    return units


def fit(constraints: LineConstraints, spelling: Spelling, room: int) -> LineAutomata:
    """Returns the automata of a line, of as many of its phrases as there is room for.

    Where there is too little, phrases share words, and then the last ones are left out.

    Args:
        constraints: of the line.
        spelling: of the vocabulary.
        room: maximum number of tokens of the output.

    Raises:
        T2TError: the vocabulary cannot spell a phrase, or it is longer than the output may be.
    """
    line = LineAutomata(units_of(constraints, spelling), spelling)
    if line.length <= room:
        return line
    for unit in line.units:
        length = LineAutomata([replace(unit, required=1)], spelling).length if unit.required else 0
        if length > room:
            raise T2TError(
                f"the phrase {unit.phrase!r} has {length} tokens, and the output may have {room}: give a "
                "larger extra_length, max_length_ratio or max_length_factor in --decode_hparams"
            )

    def of_first(number: int) -> LineAutomata:
        phrases = constraints.phrases[:number]
        phrases = merged(phrases) if number <= MERGEABLE else phrases
        return LineAutomata(units_of(replace(constraints, phrases=phrases), spelling), spelling)

    most = min(len(constraints.phrases), room + MERGEABLE)  # each has a token, but for those within others
    least_unfit = bisect_left(range(1, most + 1), True, key=lambda number: of_first(number).length > room)
    return of_first(least_unfit)


def merged(phrases: tuple[str, ...]) -> tuple[str, ...]:
    """Returns phrases that have all given ones, but share words where one ends as another begins."""
    given = LineConstraints(phrases)
    while True:
        pairs = [pair for pair in permutations(range(len(phrases)), 2) if _overlap(phrases, *pair)]
        pairs.sort(key=lambda pair: -_overlap(phrases, *pair))
        shorter = (_joined(phrases, *pair) for pair in pairs)
        better = next((found for found in shorter if not given.missing(" ".join(found))), None)
        if better is None:
            return phrases
        phrases = better


def _overlap(phrases: Sequence[str], one: int, other: int) -> int:
    """Returns how many words at the end of a phrase are the first ones of another, or all it has."""
    first, second = phrases[one].split(" "), phrases[other].split(" ")
    if count(phrases[other], phrases[one]):
        return len(second)
    lengths = range(min(len(first), len(second)), 0, -1)
    return next((length for length in lengths if first[-length:] == second[:length]), 0)


def _joined(phrases: Sequence[str], one: int, other: int) -> tuple[str, ...]:
    """Returns phrases with two of them joined."""
    words = phrases[one].split(" ")
    if not count(phrases[other], phrases[one]):
        words += phrases[other].split(" ")[_overlap(phrases, one, other) :]
    joined = [" ".join(words) if place == min(one, other) else phrase for place, phrase in enumerate(phrases)]
    del joined[max(one, other)]
    return tuple(joined)
