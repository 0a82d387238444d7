"""Coverage penalty: outputs whose words attend to all of their source come first.

Reference: Wu et al., 2016, "Google's Neural Machine Translation System", section 7, equation (14).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from t2t_revival.data.vocabulary.sentencepiece import EOS, until_eos
from t2t_revival.decoding.batching import POSITIONS, make_batches
from t2t_revival.decoding.preprocessor import pad

LEAST = 1e-9  # of the attention to a source token, whose logarithm is taken


class Decoded(NamedTuple):
    """Outputs of an input, as a search finds them.

    Attributes:
        source_ids: ids of the input, EOS included.
        ids: of each output, best first.
        scores: of each output; -inf for one that does not exist.
    """

    source_ids: list[int]
    ids: list[list[int]]
    scores: list[float]


@dataclass(frozen=True)
class CoveragePenalty:
    """Adds the penalty to the scores of outputs that a search has found, and sorts them.

    Attributes:
        attend: called with ids of sources and of outputs; returns the weights of source tokens, [batch,
            target, source].
        weight: beta.
    """

    attend: Callable[[np.ndarray, np.ndarray], np.ndarray]
    weight: float

    def __call__(self, decoded: Sequence[Decoded]) -> list[Decoded]:
        """Returns the outputs of each input with their new scores, best first; missing ones stay last."""
        rows = [
            (number, place)
            for number, one in enumerate(decoded)
            for place, score in enumerate(one.scores)
            if score > -np.inf
        ]
        if not rows:
            return list(decoded)
        outputs = [trimmed(decoded[number].ids[place]) for number, place in rows]
        sources = [decoded[number].source_ids for number, _ in rows]
        lengths = [max(map(len, pair)) for pair in zip(sources, outputs, strict=True)]
        scores = [np.array(one.scores, np.float32) for one in decoded]
        for batch in make_batches(lengths, POSITIONS):
            attention = self.attend(*(pad([side[row] for row in batch]) for side in (sources, outputs)))
            for row, weights in zip(batch, attention, strict=True):
                number, place = rows[row]
                words = len(sources[row]) - 1  # EOS needs no coverage
                scores[number][place] += self.weight * penalty(weights[: len(outputs[row]), :words])
        return [_sorted(one, own) for one, own in zip(decoded, scores, strict=True)]


def penalty(attention: Any) -> float:
    """Returns the sum over source tokens of log(min(sum of their attention, 1)), at most 0.

    Args:
        attention: [target, source].
    """
    return float(np.log(np.clip(np.sum(attention, axis=0), LEAST, 1.0)).sum())


def _sorted(one: Decoded, scores: np.ndarray) -> Decoded:
    order = np.argsort(-scores, kind="stable").tolist()
    return one._replace(
        ids=[one.ids[place] for place in order], scores=[float(scores[place]) for place in order]
    )


def trimmed(ids: list[int]) -> list[int]:
    """Returns ids up to their end, EOS included; of an output that was cut, without padding."""
    return ids[: ids.index(EOS) + 1] if EOS in ids else until_eos(ids)
