"""Details of outputs by one pass of the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.data.vocabulary.spans import Span, TokenSpans, Words, split_words, token_spans, words_of_text
from t2t_revival.data.vocabulary.text_encoder import symbol
from t2t_revival.data.word_alignment import Link
from t2t_revival.decoding.alignment_heads import LinkRule
from t2t_revival.decoding.details import EOS_NAME, NO_WORD, Alternative, Details, Token, Word
from t2t_revival.decoding.lines.batching import POSITIONS, make_batches
from t2t_revival.decoding.lines.preprocessor import OnTruncation, Preprocessor, pad, pieces_of, plain

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.engine import Annotations

Divide = Callable[[TokenSpans, str], Words]  # from tokens, and from their text as people read it


class Hypothesis(NamedTuple):
    """An output to be detailed.

    Attributes:
        source: the model's input without its tag.
        tag: what stands before the line in the model's input, with its space; "" for nothing.
        source_ids: ids of the model's input, EOS included.
        text: the output.
        ids: its tokens; EOS included unless it was cut.
    """

    source: str
    tag: str
    source_ids: list[int]
    text: str
    ids: list[int]

    @property
    def num_tags(self) -> int:
        """Number of words of the model's input before the source."""
        return len(self.tag.split())

    def words_of_input(self, vocabulary: TextEncoder, divide: Divide = words_of_text) -> Words:
        """Returns the words of the model's input, the tag included."""
        return divide(token_spans(vocabulary, self.source_ids[:-1]), self.tag + self.source)

    def words(self, vocabulary: TextEncoder, divide: Divide = words_of_text) -> Words:
        """Returns the words of the output."""
        is_whole = self.ids[-1:] == [EOS]
        return divide(token_spans(vocabulary, self.ids[:-1] if is_whole else self.ids), self.text)


@dataclass(frozen=True)
class Detailer:
    """Computes details.

    Attributes:
        annotate: see `Engine`.
        vocabularies: of source and target.
        heads: that align words; `None` for no alignment.
        alternatives: number of those of each token.
        divide: returns the words of a text and of its tokens; those of `words_at_tokens` need texts that are
            decoded from their ids.
    """

    annotate: Callable[[np.ndarray, np.ndarray, int, AlignmentHeads | None], Annotations]
    vocabularies: Vocabularies
    heads: AlignmentHeads | None = None
    alternatives: int = 0
    divide: Divide = words_of_text

    def __call__(self, hypotheses: Sequence[Hypothesis]) -> list[Details]:
        """Returns the details of each output, by passes of the model over up to `POSITIONS` tokens."""
        ended = [one.ids if one.ids[-1:] == [EOS] else [*one.ids, EOS] for one in hypotheses]
        source_ids = [one.source_ids for one in hypotheses]
        lengths = [max(map(len, sides)) for sides in zip(source_ids, ended, strict=True)]
        details: dict[int, Details] = {}
        for batch in make_batches(lengths, POSITIONS):
            sources, targets = (pad([rows[index] for index in batch]) for rows in (source_ids, ended))
            annotations = self.annotate(sources, targets, self.alternatives, self.heads)
            for row, index in enumerate(batch):
                details[index] = self._details(hypotheses[index], annotations, row)
        return [details[index] for index in range(len(hypotheses))]

    def _details(self, hypothesis: Hypothesis, annotations: Annotations, row: int) -> Details:
        ids, vocabulary = hypothesis.ids, self.vocabularies.targets
        scores = TokenScores(
            _pieces(vocabulary, ids),
            annotations.log_probs[row].tolist(),
            [_pieces(vocabulary, others) for others in annotations.alternatives[row, : len(ids)].tolist()],
            annotations.alternative_log_probs[row].tolist(),
        )
        attention = None
        if self.heads:
            words = hypothesis.words_of_input(self.vocabularies.inputs, self.divide)
            attention = SourceAttention(words, hypothesis.tag, annotations.attention[row], self.heads.rule)
        words = hypothesis.words(vocabulary, self.divide)
        return make_details(hypothesis.source, hypothesis.text, words, scores, attention)


def encode_pairs(
    preprocessor: Preprocessor,
    pairs: Sequence[tuple[str, str]],
    on_truncation: OnTruncation = lambda truncation: None,
) -> list[Hypothesis]:
    """Encodes texts and their outputs; texts are truncated to the model's `max_length`.

    Raises:
        LineError: a text is no valid Unicode.
    """
    sources, targets = (plain((pair[side] for pair in pairs), preprocessor.options) for side in (0, 1))
    inputs = pieces_of(preprocessor.preprocess(sources))
    encoded = preprocessor.sources(inputs, on_truncation)
    target_ids = preprocessor.encode(targets, preprocessor.vocabularies.targets)
    tag = symbol(preprocessor.options.tag)
    columns = zip(sources, encoded, targets, target_ids, strict=True)
    return [Hypothesis(source, tag, one.ids, target, [*out, EOS]) for source, one, target, out in columns]


def _pieces(vocabulary: TextEncoder, ids: Sequence[int]) -> list[str]:
    return [EOS_NAME if token == EOS else vocabulary.pieces[token] for token in ids]


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
