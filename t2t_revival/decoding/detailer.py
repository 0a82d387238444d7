"""Details of outputs by one pass of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_revival.data.mixture import symbol
from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.data.word_alignment import Link, words_of
from t2t_revival.decoding.batching import POSITIONS, make_batches
from t2t_revival.decoding.details import EOS_NAME, Details, Scored, make_details
from t2t_revival.decoding.preprocessor import LINE_ENDS, OnTruncation, Preprocessor, pad

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.engine import Annotations


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


@dataclass(frozen=True)
class Detailer:
    """Computes details.

    Attributes:
        annotate: see `Engine`.
        vocabularies: of source and target.
        heads: that align words; `None` for no alignment.
    """

    annotate: Callable[[np.ndarray, np.ndarray, AlignmentHeads | None], Annotations]
    vocabularies: Vocabularies
    heads: AlignmentHeads | None = None

    def __call__(self, hypotheses: Sequence[Hypothesis]) -> list[Details]:
        """Returns the details of each output, by passes of the model over up to `POSITIONS` tokens."""
        ended = [one.ids if one.ids[-1:] == [EOS] else [*one.ids, EOS] for one in hypotheses]
        lengths = [max(len(one.source_ids), len(ids)) for one, ids in zip(hypotheses, ended, strict=True)]
        details: dict[int, Details] = {}
        for batch in make_batches(lengths, POSITIONS):
            sources = pad([hypotheses[index].source_ids for index in batch])
            found = self.annotate(sources, pad([ended[index] for index in batch]), self.heads)
            details |= {
                index: self._details(hypotheses[index], found, row) for row, index in enumerate(batch)
            }
        return [details[index] for index in range(len(hypotheses))]

    def _details(self, one: Hypothesis, found: Annotations, row: int) -> Details:
        vocabulary, length = self.vocabularies.targets, len(one.ids) - (one.ids[-1:] == [EOS])
        words = words_of(vocabulary, one.ids[:length], one.text)
        columns = found.log_probs[row], found.alternatives[row], found.alternative_log_probs[row]
        each = zip(*(column.tolist() for column in columns), strict=True)
        tokens = [
            Scored(
                _piece(vocabulary, token),
                log_prob,
                [_piece(vocabulary, other) for other in others],
                others_log_probs,
            )
            for token, (log_prob, others, others_log_probs) in zip(one.ids, each, strict=False)
        ]
        return make_details(
            one.source, one.text, tokens, words, self._links(one, words, found.attention[row])
        )

    def _links(self, one: Hypothesis, words: list[int], attention: np.ndarray) -> list[Link]:
        if self.heads is None:
            return []
        ids = one.source_ids[:-1]
        source_words = words_of(self.vocabularies.inputs, ids, one.tag + one.source)
        tags = len(one.tag.split())
        rows = attention[: len(words) + 1, : len(one.source_ids)]
        found = self.heads.links(rows, source_words, words)
        return [(source - tags, target) for source, target in found if source >= tags]


def encode_pairs(
    preprocessor: Preprocessor,
    pairs: Sequence[tuple[str, str]],
    on_truncation: OnTruncation = lambda truncation: None,
) -> list[Hypothesis]:
    """Encodes texts and their outputs; texts are truncated to the model's `max_length`.

    Raises:
        LineError: a text is no valid Unicode.
    """
    sources, targets = ([pair[side].translate(LINE_ENDS) for pair in pairs] for side in (0, 1))
    source_ids = preprocessor.sources(preprocessor.preprocess(sources), on_truncation)
    target_ids = preprocessor.encode(targets, preprocessor.vocabularies.targets)
    tag = symbol(preprocessor.options.tag)
    columns = zip(sources, source_ids, targets, target_ids, strict=True)
    return [Hypothesis(source, tag, ids, target, [*out, EOS]) for source, ids, target, out in columns]


def _piece(vocabulary: TextEncoder, token: int) -> str:
    return EOS_NAME if token == EOS else vocabulary.pieces[token]
