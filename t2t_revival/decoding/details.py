"""Details of outputs: words, tokens, their log-probabilities, alternatives, and the words they translate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from t2t_revival.data.vocabulary.spans import Span
from t2t_revival.data.word_alignment import Link

EOS_NAME = "<EOS>"
NO_WORD = -1  # of the end


class Alternative(NamedTuple):
    """A token that could have stood at a position, and its log-probability there."""

    piece: str
    log_prob: float


class Token(NamedTuple):
    """A token of an output.

    Attributes:
        piece: its name in the vocabulary; `EOS_NAME` for the end.
        log_prob: its log-probability, given the source and the tokens before it.
        word: number of the word that it is part of; -1 for the end.
        alternatives: the most probable tokens at its position, best first.
    """

    piece: str
    log_prob: float
    word: int
    alternatives: tuple[Alternative, ...]


class Word(NamedTuple):
    """A word of an output, its place, and the sum of its tokens' log-probabilities."""

    text: str
    start: int
    end: int
    log_prob: float


@dataclass(frozen=True)
class Details:
    """Details of an output. Words are what stands between white space; places count characters.

    Attributes:
        source_words: places of the source's words.
        words: of the output.
        tokens: of the output, the end included unless the output was cut before it.
        links: word alignment, sorted by words of the output; empty if it was not asked for.
        attention: weights of the source's words for each word of the output, by which these are aligned;
            empty if that was not asked for, or a side is blank.
    """

    source_words: tuple[Span, ...]
    words: tuple[Word, ...]
    tokens: tuple[Token, ...]
    links: tuple[Link, ...]
    attention: Sequence[Sequence[float]] = ()
