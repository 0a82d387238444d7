"""Details of outputs: words, tokens, their log-probabilities, alternatives, and the words they translate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np

from t2t_revival.data.vocabulary.spans import Span, TokenSpans, split_words
from t2t_revival.data.word_alignment import Link, words_of_spans
from t2t_revival.decoding.alignment_heads import LinkRule, align

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
            words without tokens may be missing at the end.
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
        tokens: of the model's input, without the end.
        tag: before the source in the model's input, with its space; "" for none.
        weights: see `align`.
        rule: for links.
    """

    tokens: TokenSpans
    tag: str
    weights: np.ndarray
    rule: LinkRule


def make_details(
    source: str, text: str, tokens: TokenSpans, scores: TokenScores, attention: SourceAttention | None = None
) -> Details:
    """Puts details together.

    Args:
        source: the line.
        text: the output.
        tokens: of the output, without the end.
        scores: of the tokens.
        attention: aligns words; `None` for no alignment.
    """
    words = words_of_spans(tokens, text)
    sums: dict[int, float] = defaultdict(float)
    for word, log_prob in zip(words, scores.log_probs, strict=False):
        sums[word] += log_prob
    columns = zip(chain(words, repeat(NO_WORD)), *scores, strict=False)
    weights, links = np.zeros((0, 0)), list[Link]()
    if attention:
        source_words = words_of_spans(attention.tokens, attention.tag + source)
        num_tags = len(attention.tag.split())
        weights, links = align(attention.weights, source_words, words, attention.rule, num_tags)
    return Details(
        tuple(split_words(source)),
        tuple(Word(text[slice(*span)], *span, sums[number]) for number, span in enumerate(split_words(text))),
        tuple(
            Token(piece, log_prob, word, tuple(map(Alternative, others, other_log_probs)))
            for word, piece, log_prob, others, other_log_probs in columns
        ),
        tuple(links),
        weights.tolist(),
    )
