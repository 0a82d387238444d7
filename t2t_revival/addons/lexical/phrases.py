"""Phrases as tokens: how a vocabulary spells them, and automata that find them while an output is written.

An output has a phrase where its text has it as whole words. The same phrase has other tokens at the beginning
of an output than after a space, and may be the beginning of a longer word, so that only the next token tells
whether it is there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import combinations, product

import numpy as np

from t2t_revival.data.vocabulary.spans import UNSPACED
from t2t_revival.data.vocabulary.subword_format import END, escape, is_alphanumeric, split_runs
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.text_encoder import EOS, PAD, TextEncoder
from t2t_revival.errors import T2TError

ANYTHING, BOUNDARY, NOTHING, AT_ONCE = range(4)  # values of `Form.after`
BEGINS_WORD, ENDS_RUN = 2, 1  # what a token may do; its class, if no phrase has it, is the sum
OTHER_CLASSES = 4
CACHED = 2**12  # phrases
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def joins(character: str) -> bool:
    """Returns whether a character forms a word with one beside it."""
    return unicodedata.category(character)[0] in "LNM" and not UNSPACED.match(character)


@dataclass(frozen=True)
class Form:
    """One way to spell a phrase.

    Attributes:
        ids: its tokens.
        at_start: `True` if it can only begin an output, `False` if it cannot, `None` if it may.
        after_run: whether the token before it must end a run of T2T's vocabularies.
        after: `ANYTHING` may follow; `BOUNDARY`: not a token that continues the word; `NOTHING` but EOS;
            `AT_ONCE`: the phrase is complete without a look at what follows.
        open_end: whether the form does not end its run.
        edges: the place after a token, by place and token, where the form may be written in other tokens too;
            `None` if not.
    """

    ids: tuple[int, ...]
    at_start: bool | None = None
    after_run: bool = False
    after: int = ANYTHING
    open_end: bool = False
    edges: Mapping[tuple[int, int], int] | None = field(default=None, hash=False)

    @cached_property
    def steps(self) -> Mapping[tuple[int, int], int]:
        """The place after a token, by place and token; the form begins at place 0."""
        return self.edges or {(place, token): place + 1 for place, token in enumerate(self.ids)}

    @cached_property
    def end(self) -> int:
        """The place where the form is complete."""
        return max(self.steps.values())


class Spelling:
    """Spells phrases with the tokens of a vocabulary.

    Args:
        vocabulary: of the outputs.

    Attributes:
        closing: a token that ends a run, and nothing else, of T2T's vocabularies; PAD in others.
    """

    def __init__(self, vocabulary: TextEncoder) -> None:
        self.vocabulary = vocabulary
        self.forms, self.automaton = (
            lru_cache(CACHED)(self._forms),
            lru_cache(CACHED)(partial(automaton, spelling=self)),
        )
        self.lattice = lru_cache(CACHED)(self._lattice)
        self.closing = PAD
        if isinstance(vocabulary, SubwordVocabulary):
            self.closing = vocabulary.pieces.index(END)

    @cached_property
    def classes(self) -> np.ndarray:
        """Class of each token that no phrase has, int32 [vocab]; see `BEGINS_WORD`."""
        if self.closing:
            pieces = self.vocabulary.pieces
            return np.array([BEGINS_WORD + ENDS_RUN * piece.endswith(END) for piece in pieces], np.int32)
        begins = [not joins(_first(piece)) for piece in self.vocabulary.pieces]
        classes = np.where(begins, BEGINS_WORD + ENDS_RUN, ENDS_RUN).astype(np.int32)
        classes[EOS] = OTHER_CLASSES - 1
        return classes

    def _forms(self, phrase: str) -> tuple[Form, ...]:
        """Returns the ways to spell a phrase, which has no white space around it.

        Raises:
            T2TError: the vocabulary cannot spell it.
        """
        vocabulary = self.vocabulary
        if any("\ud800" <= character <= "\udfff" for character in phrase):
            raise T2TError(f"{phrase!r} is not valid Unicode: it has a lone surrogate")
        if isinstance(vocabulary, SubwordVocabulary):
            forms = _subword_forms(phrase, vocabulary)
        else:
            forms = _sentencepiece_forms(phrase, vocabulary.encode)
        ids = forms[0].ids
        if not ids or {PAD, EOS, vocabulary.unknown or PAD} & {*ids} or vocabulary.decode(ids) != phrase:
            raise T2TError(f"the vocabulary cannot spell {phrase!r}: leave it out, or write it otherwise")
        return tuple(forms)

    def _lattice(self, form: Form) -> Form:
        """Returns a form with all ways to write it; places are those of its characters."""
        text = "".join(self.vocabulary.pieces[token] for token in form.ids)
        edges = {
            (start, self._tokens[text[start:end]]): end
            for start, end in combinations(range(len(text) + 1), 2)
            if text[start:end] in self._tokens
        }
        return replace(form, edges=edges)

    @cached_property
    def _tokens(self) -> dict[str, int]:
        return {piece: token for token, piece in enumerate(self.vocabulary.pieces)}

    def other_form(self, ids: Sequence[int], found: Callable[[str], bool]) -> tuple[int, ...]:
        """Returns the tokens of an output in which a phrase is `found`: the first and fewest that have it."""
        decode = self.vocabulary.decode
        ends = (end for end in range(1, len(ids) + 1) if found(decode(ids[:end])))
        end = next(ends, len(ids))
        begins = (start for start in range(end - 1, -1, -1) if found(decode(ids[start:end])))
        return tuple(ids[next(begins, 0) : end])


def _first(piece: str) -> str:
    """Returns the first character of a piece of SentencePiece; a letter for bytes of longer characters."""
    if match := _BYTE.fullmatch(piece):
        code = int(match[1], 16)
        return chr(code) if code < 128 else "x"
    return piece[:1] or " "


def _sentencepiece_forms(phrase: str, encode: Callable[[str], list[int]]) -> list[Form]:
    after = BOUNDARY if joins(phrase[-1]) else ANYTHING
    alone = Form(tuple(encode(phrase)), after=after)
    if UNSPACED.match(phrase):
        return [alone]
    return [replace(alone, at_start=True), Form(tuple(encode(f" {phrase}")), at_start=False, after=after)]


def _subword_forms(phrase: str, vocabulary: SubwordVocabulary) -> list[Form]:
    """Returns forms that end with a run; runs without letters have the spaces around them."""
    before, behind = ("" if is_alphanumeric(edge) else " " for edge in (phrase[0], phrase[-1]))
    open_start, open_end = (bool(UNSPACED.match(edge)) for edge in (phrase[0], phrase[-1]))
    forms = []
    for at_start, at_end in product(
        (True, False) if before else (None,), (True, False) if behind else (None,)
    ):
        text = ("" if at_start else before) + phrase + ("" if at_end else behind)
        ids = vocabulary.encode(text)
        if open_end:
            *runs, last = split_runs(text)
            ids = [token for run in runs for token in vocabulary.encode(run)]
            ids += vocabulary.parts(escape(last, vocabulary.alphabet).removesuffix(END))
        forms.append(
            Form(tuple(ids), at_start, not open_start, NOTHING if at_end else ANYTHING, open_end=open_end)
        )
    return forms


@dataclass(frozen=True)
class Automaton:
    """A deterministic automaton that counts the occurrences of a phrase, none of which overlap.

    Occurrences of different phrases may overlap. State 0 is that of an empty output.

    Attributes:
        alphabet: tokens of the phrase, ascending.
        next_states: int32 [states, classes]; classes are `OTHER_CLASSES`, and then the alphabet's tokens.
        emits: whether a token shows that an occurrence is complete, bool [states, classes].
        ended: whether EOS would show it, bool [states].
        gains: tokens of the phrase that are there; negative if more than `cost` are needed; int32 [states].
        next_tokens: the next token on the shortest way to an occurrence, int32 [states].
        cost: tokens of an occurrence.
    """

    alphabet: list[int]
    next_states: np.ndarray
    emits: np.ndarray
    ended: np.ndarray
    gains: np.ndarray
    next_tokens: np.ndarray
    cost: int

    def classes_of(self, tokens: Sequence[int], classes: np.ndarray) -> list[int]:
        """Returns the class of each token; `classes` are those of tokens that the phrase has not."""
        own = {token: number for number, token in enumerate(self.alphabet, start=OTHER_CLASSES)}
        return [own.get(token, int(classes[token])) for token in tokens]


@dataclass(frozen=True)
class _State:
    """A set of forms that have been begun, as (form, place).

    Attributes:
        items: the forms.
        at_start: whether the output is empty.
        closed: whether the last token ends a run.
    """

    items: frozenset[tuple[Form, int]]
    at_start: bool
    closed: bool

    def step(self, forms: Sequence[Form], token: int, kind: int) -> tuple[_State, bool]:
        """Returns the state after a token, and whether an occurrence is complete before it."""
        begins, closed = kind >= BEGINS_WORD, bool(kind & ENDS_RUN)
        emits = any(
            place == form.end and (form.after == ANYTHING or (form.after == BOUNDARY and begins))
            for form, place in self.items
        )
        begun = [] if emits else [*self.items]
        begun += [(form, 0) for form in forms if self.may_begin(form)]
        steps = ((form, form.steps.get((place, token))) for form, place in begun)
        items = {(form, place) for form, place in steps if place is not None}
        at_once = any(form.after == AT_ONCE and place == form.end for form, place in items)
        return _State(frozenset(() if at_once else items), False, closed), emits or at_once

    def may_begin(self, form: Form) -> bool:
        return form.at_start in (None, self.at_start) and (self.closed or not form.after_run)

    @property
    def ended(self) -> bool:
        return any(place == form.end for form, place in self.items)

    def way(self, forms: Sequence[Form], closing: int) -> tuple[int, int]:
        """Returns how many tokens an occurrence still needs, and the first token of the next one."""
        begun = [(len(f.ids) - n, f.ids[n:]) for f, n in self.items if f.after != NOTHING]
        plain = [form.ids for form in forms if form.after != NOTHING and not form.at_start]
        usable = [f.ids for f in forms if f.after != NOTHING and self.may_begin(f)]
        fresh = min(usable, key=len) if usable else (closing, *min(plain, key=len))
        left, ids = min(begun, default=(len(fresh), fresh))
        return left, (ids or fresh)[0]


def automaton(forms: Sequence[Form], spelling: Spelling) -> Automaton:
    """Returns the automaton of a phrase.

    Args:
        forms: of the phrase.
        spelling: of the vocabulary.
    """
    alphabet = sorted({token for form in forms for _, token in form.steps})
    tokens = [(PAD, kind) for kind in range(OTHER_CLASSES)]
    tokens += [(token, int(spelling.classes[token])) for token in alphabet]
    states = [_State(frozenset(), True, True)]
    numbers = {states[0]: 0}
    next_states, emits = [], []
    for state in states:  # which grows
        steps = [state.step(forms, token, kind) for token, kind in tokens]
        for following, _ in steps:
            if following not in numbers:
                numbers[following] = len(states)
                states.append(following)
        next_states.append([numbers[following] for following, _ in steps])
        emits.append([emitted for _, emitted in steps])
    inner = [form for form in forms if form.after != NOTHING and not form.at_start]
    cost = min(len(form.ids) + bool(form.open_end and spelling.closing) for form in inner)
    ways = [state.way(forms, spelling.closing) for state in states]
    return Automaton(
        alphabet,
        np.array(next_states, np.int32),
        np.array(emits),
        np.array([state.ended for state in states]),
        np.array([cost - left for left, _ in ways], np.int32),
        np.array([token for _, token in ways], np.int32),
        cost,
    )
