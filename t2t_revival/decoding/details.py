"""Details of outputs: words, tokens, their log-probabilities, alternatives, and the words they translate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from t2t_revival.data.word_alignment import Link, Span, split_words

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
    """

    source_words: tuple[Span, ...]
    words: tuple[Word, ...]
    tokens: tuple[Token, ...]
    links: tuple[Link, ...]


class Scored(NamedTuple):
    """A token by its name, its log-probability, and the names and log-probabilities of alternatives."""

    piece: str
    log_prob: float
    alternatives: list[str]
    alternative_log_probs: list[float]


def make_details(
    source: str, text: str, scored: Sequence[Scored], words: Sequence[int], links: Iterable[Link]
) -> Details:
    """Puts details together.

    Args:
        source: the line.
        text: the output.
        scored: its tokens, the end included unless it was cut.
        words: number of the word of each token but the end; empty without words.
        links: word alignment, sorted by words of the output.
    """
    places = [*(words or [NO_WORD] * len(scored)), NO_WORD]
    sums: dict[int, float] = defaultdict(float)
    for token, word in zip(scored, words, strict=False):
        sums[word] += token.log_prob
    return Details(
        tuple(split_words(source)),
        tuple(Word(text[slice(*span)], *span, sums[number]) for number, span in enumerate(split_words(text))),
        tuple(
            Token(
                token.piece,
                token.log_prob,
                word,
                tuple(map(Alternative, token.alternatives, token.alternative_log_probs)),
            )
            for token, word in zip(scored, places, strict=False)
        ),
        tuple(links),
    )
