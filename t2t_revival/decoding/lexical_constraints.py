"""Lexical constraints of lines: phrases that an output must have, and words that it must not have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from t2t_revival.decoding.beams import LexicalTables
from t2t_revival.decoding.phrases import OTHER_CLASSES, Automaton, Form, Spelling, automaton, joins
from t2t_revival.errors import T2TError


@dataclass(frozen=True)
class LineConstraints:
    """Phrases of an output, as whole words and as they are written.

    Attributes:
        phrases: an output must have each of them, as often as it is given.
        avoid: an output must have none of them.

    Example:
        translator.nbest(["The dog sleeps."], constraints=[LineConstraints(("Dackel",), avoid=("Hund",))])
    """

    phrases: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.phrases or self.avoid)

    def check(self) -> None:
        """Checks that an output can meet the constraints.

        Raises:
            T2TError: a phrase is empty, or has an avoided one.
        """
        for phrase in (*self.phrases, *self.avoid):
            if not phrase.strip():
                raise T2TError("a phrase of the constraints is empty: leave it out")
        for phrase in self.phrases:
            for avoided in self.avoid:
                if phrase == avoided:
                    raise T2TError(f"{phrase!r} is to be in the output and to be avoided: choose one")
                if count(avoided, phrase):
                    raise T2TError(
                        f"the phrase {phrase!r} has {avoided!r}, which is to be avoided: choose one"
                    )

    def missing(self, text: str) -> tuple[str, ...]:
        """Returns the phrases that an output lacks, each as often as it lacks it."""
        wanted = Counter(self.phrases)
        lacking = ((phrase, number - count(phrase, text)) for phrase, number in wanted.items())
        return tuple(phrase for phrase, number in lacking for _ in range(number))

    def present(self, text: str) -> tuple[str, ...]:
        """Returns the avoided phrases that an output has."""
        return tuple(phrase for phrase in dict.fromkeys(self.avoid) if count(phrase, text))


def count(phrase: str, text: str) -> int:
    """Returns how often a text has a phrase as whole words."""
    return sum(1 for _ in spans(_pattern(phrase), text))


@lru_cache(2**14)
def _pattern(phrase: str) -> re.Pattern[str]:
    return re.compile(re.escape(phrase))


def spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yields the beginnings and ends of a pattern's matches that are whole words, from left to right.

    Scripts without spaces have no limits of words.
    """
    start = 0
    while match := pattern.search(text, start):
        begin, end = match.span()
        is_whole = not (_is_inside(text, begin) or _is_inside(text, end))
        start = end if is_whole else begin + 1
        if is_whole:
            yield begin, end


def _is_inside(text: str, place: int) -> bool:
    """Returns whether a place of a text is inside a word."""
    return 0 < place < len(text) and joins(text[place - 1]) and joins(text[place])


@dataclass(frozen=True)
class Unit:
    """A phrase as the search sees it.

    Attributes:
        forms: ways to spell it.
        required: how often an output must have it; 0 if it must not have it.
    """

    forms: tuple[Form, ...]
    required: int


def units_of(constraints: LineConstraints, spelling: Spelling) -> list[Unit]:
    """Spells the phrases of a line.

    Raises:
        T2TError: the vocabulary cannot spell one of them.
    """
    wanted = Counter(constraints.phrases)
    for phrase in constraints.avoid:
        wanted.setdefault(phrase, 0)
    return [Unit(tuple(spelling.forms(phrase)), number) for phrase, number in wanted.items()]


class LineAutomata:
    """The automata of a line's phrases.

    Args:
        units: the phrases.
        spelling: of the vocabulary.

    Attributes:
        units: the phrases.
        alphabet: tokens of all forms.
        automata: one of each phrase.
    """

    def __init__(self, units: Sequence[Unit], spelling: Spelling) -> None:
        self.units = units
        self.alphabet = sorted({token for unit in units for form in unit.forms for token in form.ids})
        self.automata = [automaton(unit.forms, self.alphabet, spelling) for unit in units]

    @property
    def length(self) -> int:
        """Number of tokens, without EOS, in which an output can have all phrases."""
        pairs = [(one, unit.required) for one, unit in zip(self.automata, self.units, strict=True)]
        gains = [int(one.gains[0]) for one, required in pairs if required]
        return sum(one.cost * required for one, required in pairs) - max(gains, default=0)


def tables_of(lines: Sequence[LineAutomata], rooms: Iterable[int]) -> LexicalTables:
    """Returns the tables of a batch, in NumPy.

    Args:
        lines: of each sentence.
        rooms: maximum number of tokens of each output, EOS counted.
    """
    batch, phrases = len(lines), max(1, *(len(line.automata) for line in lines))
    letters = max(len(line.alphabet) for line in lines)
    states = max((len(one.gains) for line in lines for one in line.automata), default=1)
    classes = OTHER_CLASSES + letters
    tables = LexicalTables(
        alphabet=np.full((batch, letters), -1, np.int32),
        transitions=np.zeros((batch, phrases, states, classes), np.int32),
        ended=np.zeros((batch, phrases, states), bool),
        gains=np.zeros((batch, phrases, states), np.int32),
        next_tokens=np.zeros((batch, phrases, states), np.int32),
        costs=np.ones((batch, phrases), np.int32),
        required=np.zeros((batch, phrases), np.int32),
        forbidden=np.zeros((batch, phrases), bool),
        reserved=np.array(
            [[int(line.length < room)] for line, room in zip(lines, rooms, strict=True)], np.int32
        ),
    )
    for row, line in enumerate(lines):
        tables.alphabet[row, : len(line.alphabet)] = line.alphabet
        for place, (unit, one) in enumerate(zip(line.units, line.automata, strict=True)):
            _enter(tables, (row, place), unit, one)
    return LexicalTables(*(x.reshape(batch, -1) for x in tables))


def _enter(tables: LexicalTables, place: tuple[int, int], unit: Unit, one: Automaton) -> None:
    """Enters a phrase of a sentence into the tables."""
    states, classes = one.next_states.shape
    tables.transitions[place][:states, :classes] = 2 * one.next_states + one.emits
    tables.ended[place][:states] = one.ended
    tables.gains[place][:states] = one.gains
    tables.next_tokens[place][:states] = one.next_tokens
    tables.costs[place] = one.cost
    tables.required[place] = unit.required
    tables.forbidden[place] = not unit.required
