"""Models that write their outputs from the last token to the first (hparam `reverse_target`).

Only the model sees reversed tokens, in training (`data.batching`) and here: texts, ids and details stay in
the order in which people read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_revival.data.vocabulary.text_encoder import EOS
from t2t_revival.decoding.capabilities import RIGHT_TO_LEFT
from t2t_revival.decoding.engine import Annotations, Engine, Inputs

if TYPE_CHECKING:
    from t2t_revival.checkpoints.directory import Checkpoint
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.model import Transformer


class RightToLeftEngine(Engine):
    """An engine whose model has reversed targets; the ids that it takes and returns are in text order.

    The rows of `attend` are in the model's order. There are no alignment heads, since they refuse the model.

    Args:
        engine: of the model.
    """

    place = RIGHT_TO_LEFT

    def __init__(self, engine: Engine) -> None:
        self._engine, self.out_of_memory = engine, engine.out_of_memory  # type: ignore[misc]
        self.description = engine.description

    @property
    def model(self) -> Transformer:
        return self._engine.model

    def load_weights(self, checkpoint: Checkpoint) -> None:
        self._engine.load_weights(checkpoint)

    def search(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        ids, scores = self._engine.search(inputs)
        return reverse(ids), np.asarray(scores)

    def score(self, source_ids: Any, target_ids: Any) -> Any:
        return self._engine.score(source_ids, reverse(target_ids))

    def attend(self, source_ids: Any, target_ids: Any) -> Any:
        return self._engine.attend(source_ids, reverse(target_ids))

    def annotate(
        self, source_ids: Any, target_ids: Any, alternatives: int, heads: AlignmentHeads | None
    ) -> Annotations:
        found = self._engine.annotate(source_ids, reverse(target_ids), alternatives, heads)
        order = reversed_order(np.asarray(target_ids))  # [batch, target]
        return found._replace(
            log_probs=np.take_along_axis(found.log_probs, order, 1),
            alternatives=np.take_along_axis(found.alternatives, order[..., None], 1),
            alternative_log_probs=np.take_along_axis(found.alternative_log_probs, order[..., None], 1),
        )


def reverse(ids: Any) -> np.ndarray:
    """Reverses the tokens of each output before its EOS; ids are int32 [..., length]."""
    table = np.asarray(ids)
    return np.take_along_axis(table, reversed_order(table), -1)


def reversed_order(ids: np.ndarray) -> np.ndarray:
    """Returns the position of each reversed token: n-1 to 0 before an EOS at n, and then n, n+1, ...

    An output without EOS is reversed as a whole.
    """
    length = ids.shape[-1]
    ends = np.where(ids == EOS, np.arange(length), length).min(-1, keepdims=True, initial=length)
    places = np.broadcast_to(np.arange(length), ids.shape)
    return np.where(places < ends, ends - 1 - places, places)
