"""Details of outputs: words, tokens, their log-probabilities, alternatives, and the words they translate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np

from t2t_revival.data.vocabulary.spans import Span, Words, split_words
from t2t_revival.data.word_alignment import Link
from t2t_revival.decoding.alignment_heads import LinkRule

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


class TokenScores(NamedTuple):
    """Columns of the tokens of an output, its end included unless the output was cut before it.

    Attributes:
        pieces: names in the vocabulary.
        log_probs: of each.
        alternatives: names of the most probable tokens at its position, best first.
        alternative_log_probs: of each of these.
    """

    pieces: Sequence[str]
    log_probs: Sequence[float]
    alternatives: Sequence[Sequence[str]]
    alternative_log_probs: Sequence[Sequence[float]]


class SourceAttention(NamedTuple):
    """Attention of the tokens of an output to those of its source.

    Attributes:
        words: of the model's input.
        tag: before the source in the model's input, with its space; "" for none.
        weights: see `LinkRule.align`.
        rule: for links.
    """

    words: Words
    tag: str
    weights: np.ndarray
    rule: LinkRule


def make_details(
    source: str, text: str, words: Words, scores: TokenScores, attention: SourceAttention | None = None
) -> Details:
    """Puts details together.

    Args:
        source: the line.
        text: the output.
        words: of the output.
        scores: of its tokens.
        attention: aligns words; `None` for no alignment.
    """
    sums: dict[int, float] = defaultdict(float)
    for word, log_prob in zip(words.of_tokens, scores.log_probs, strict=False):
        sums[word] += log_prob
    columns = zip(chain(words.of_tokens, repeat(NO_WORD)), *scores, strict=False)
    source_words, weights, links = split_words(source), np.zeros((0, 0)), list[Link]()
    if attention:
        length, num_tags = len(attention.tag), len(attention.tag.split())
        source_words = [Span(start - length, end - length) for start, end in attention.words.spans[num_tags:]]
        weights, links = attention.rule.align(attention.weights, attention.words, words, num_tags)
    return Details(
        tuple(source_words),
        tuple(Word(text[slice(*span)], *span, sums[number]) for number, span in enumerate(words.spans)),
        tuple(
            Token(piece, log_prob, word, tuple(map(Alternative, others, other_log_probs)))
            for word, piece, log_prob, others, other_log_probs in columns
        ),
        tuple(links),
        weights.tolist(),
    )
