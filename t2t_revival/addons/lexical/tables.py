"""Phrases of a batch as arrays, for the search in the graph."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from t2t_revival.addons.lexical.phrases import (
    BEGINS_WORD,
    BOUNDARY,
    NOTHING,
    OTHER_CLASSES,
    Automaton,
    Form,
    Spelling,
)


class LexicalTables(NamedTuple):
    """Automata of the phrases that outputs must or must not have; see `phrases.Automaton`.

    Attributes:
        alphabet: tokens of each sentence's phrases, int32 [batch, tokens], padded with -1.
        transitions: 2 * next state + whether an occurrence is complete, int32 [batch, phrases * states *
            classes].
        ended: bool [batch, phrases * states].
        gains: int32 [batch, phrases * states].
        next_tokens: int32 [batch, phrases * states].
        costs: int32 [batch, phrases].
        overlaps: tokens of a second phrase that come with those of a first one, int32 [batch, phrases *
            phrases].
        required: how often an output must have each phrase, int32 [batch, phrases].
        forbidden: whether an output must not have it, bool [batch, phrases].
        reserved: positions that are kept for EOS, int32 [batch, 1]; 0 if there is no room for it.
    """

    alphabet: Any
    transitions: Any
    ended: Any
    gains: Any
    next_tokens: Any
    costs: Any
    overlaps: Any
    required: Any
    forbidden: Any
    reserved: Any


class LexicalState(NamedTuple):
    """State of each automaton, and occurrences still needed, both int32 [batch, beams, phrases]."""

    states: Any
    needed: Any


@dataclass(frozen=True)
class Unit:
    """A phrase as the search sees it.

    Attributes:
        forms: ways to spell it.
        required: how often an output must have it; 0 if it must not have it.
        phrase: its text.
    """

    forms: tuple[Form, ...]
    required: int
    phrase: str = ""


class LineAutomata:
    """The automata of a line's phrases.

    Args:
        units: the phrases.
        spelling: of the vocabulary.

    Attributes:
        units: the phrases.
        classes: see `Spelling`.
        automata: one of each phrase.
        alphabet: tokens of all of them.
    """

    def __init__(self, units: Sequence[Unit], spelling: Spelling) -> None:
        self.units, self.classes = units, spelling.classes
        self.automata = [spelling.automaton(unit.forms) for unit in units]
        self.alphabet = sorted({token for one in self.automata for token in one.alphabet})

    @property
    def length(self) -> int:
        """Number of tokens, without EOS, in which an output can have all phrases."""
        wanted = [place for place, unit in enumerate(self.units) if unit.required]
        costs = [self.automata[place].cost * self.units[place].required for place in wanted]
        gains = [
            int(self.automata[place].gains[0])
            + max((self.overlaps[place, other] for other in wanted if other != place), default=0)
            for place in wanted
        ]
        return sum(costs) - max(gains, default=0)

    @cached_property
    def overlaps(self) -> np.ndarray:
        """Tokens of a second phrase that come with those of a first one, int32 [phrases, phrases]."""
        table = np.zeros([len(self.units)] * 2, np.int32)
        for first, unit in enumerate(self.units):
            for second, one in enumerate(self.automata):
                if first != second and unit.required and self.units[second].required:
                    usable = (form for form in unit.forms if form.after != NOTHING)
                    table[first, second] = min(self._overlap(form, one) for form in usable)
        return table

    def _overlap(self, form: Form, one: Automaton) -> int:
        """Returns how many tokens of a phrase come with a form of another."""
        closed = OTHER_CLASSES - 1
        state = 0 if form.at_start else one.next_states[0, closed]
        for kind in one.classes_of(form.ids, self.classes):
            if one.emits[state, kind]:
                return one.cost
            state = one.next_states[state, kind]
        begins_word = self.classes[one.next_tokens[state]] >= BEGINS_WORD
        breaks = form.after == BOUNDARY and not begins_word  # the end of the word that the form is
        return 0 if breaks else max(int(one.gains[state]), 0)


def tables_of(lines: Sequence[LineAutomata], rooms: Iterable[int]) -> LexicalTables:
    """Returns the tables of a batch, in NumPy.

    Args:
        lines: of each sentence.
        rooms: maximum number of tokens of each output, EOS counted.
    """
    batch, phrases = len(lines), max(1, *(len(line.automata) for line in lines))
    letters = max(1, *(len(line.alphabet) for line in lines))
    states = max((len(one.gains) for line in lines for one in line.automata), default=1)
    classes = OTHER_CLASSES + letters
    tables = LexicalTables(
        alphabet=np.full((batch, letters), -1, np.int32),
        transitions=np.zeros((batch, phrases, states, classes), np.int32),
        ended=np.zeros((batch, phrases, states), bool),
        gains=np.zeros((batch, phrases, states), np.int32),
        next_tokens=np.zeros((batch, phrases, states), np.int32),
        costs=np.ones((batch, phrases), np.int32),
        overlaps=np.zeros((batch, phrases, phrases), np.int32),
        required=np.zeros((batch, phrases), np.int32),
        forbidden=np.zeros((batch, phrases), bool),
        reserved=np.array(
            [[int(line.length < room)] for line, room in zip(lines, rooms, strict=True)], np.int32
        ),
    )
    for row, line in enumerate(lines):
        tables.alphabet[row, : len(line.alphabet)] = line.alphabet
        tables.overlaps[row, : len(line.units), : len(line.units)] = line.overlaps
        for place, (unit, one) in enumerate(zip(line.units, line.automata, strict=True)):
            kinds = [*range(OTHER_CLASSES), *one.classes_of(line.alphabet, line.classes)]
            _enter(tables, (row, place), unit, one, kinds)
    return LexicalTables(*(x.reshape(batch, -1) for x in tables))


def _enter(
    tables: LexicalTables, place: tuple[int, int], unit: Unit, one: Automaton, kinds: list[int]
) -> None:
    """Enters a phrase of a sentence into the tables; `kinds` are its classes for those of the sentence."""
    states = len(one.gains)
    tables.transitions[place][:states, : len(kinds)] = (2 * one.next_states + one.emits)[:, kinds]
    tables.ended[place][:states] = one.ended
    tables.gains[place][:states] = one.gains
    tables.next_tokens[place][:states] = one.next_tokens
    tables.costs[place] = one.cost
    tables.required[place] = unit.required
    tables.forbidden[place] = not unit.required


def pack(tables: LexicalTables) -> list[str]:
    """Returns a text for each sentence, as exported models take it: web-safe base64 of int32, little-endian.

    They are the numbers of phrases, of states and of tokens in the alphabet, and then the sentence's row of
    each table. Sentences of any sizes can therefore be one batch of a server.
    """
    phrases = tables.costs.shape[1]
    sizes = [phrases, tables.gains.shape[1] // phrases, tables.alphabet.shape[1]]
    rows = np.concatenate([np.tile(sizes, (len(tables.costs), 1)), *tables], axis=1).astype("<i4")
    return [base64.urlsafe_b64encode(row.tobytes()).decode() for row in rows]


NO_PHRASES = pack(
    LexicalTables(
        alphabet=np.array([[-1]]),
        transitions=np.zeros((1, OTHER_CLASSES + 1), int),
        ended=np.array([[False]]),
        gains=np.array([[0]]),
        next_tokens=np.array([[0]]),
        costs=np.array([[1]]),
        overlaps=np.array([[0]]),
        required=np.array([[0]]),
        forbidden=np.array([[False]]),
        reserved=np.array([[1]]),
    )
)[0]
