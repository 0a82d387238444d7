"""Models that write their outputs from the last token to the first (hparam `reverse_target`).

Only the model sees reversed tokens, in training (`data.batching`) and here: texts, ids and details stay in
the order in which people read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_revival.data.vocabulary.text_encoder import EOS
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.ctranslate2_engine import CTranslate2Engine
    from t2t_revival.decoding.details import Annotations
    from t2t_revival.decoding.jax_engine import JaxEngine
    from t2t_revival.decoding.tensorflow_engine import TensorFlowEngine

Found = tuple[np.ndarray, np.ndarray]  # ids [batch, n, length], scores [batch, n]


class RightToLeftEngine:
    """An engine whose model has reversed targets; the ids that it takes and returns are in text order.

    Args:
        engine: of the model.

    Attributes:
        constraint: `None`; trees are refused.
        out_of_memory: see `TensorFlowEngine`.
        attend: see `TensorFlowEngine`; the rows of an output are in the model's order.

    Raises:
        T2TError: outputs are constrained to trees.
    """

    constraint = None

    def __init__(self, engine: TensorFlowEngine | JaxEngine | CTranslate2Engine) -> None:
        if engine.constraint is not None:
            raise T2TError(
                "decode_hparams: constrained=True is for trees that begin with their first token, and this "
                "model has reverse_target: give constrained=False"
            )
        self._engine, self.out_of_memory = engine, engine.out_of_memory
        self.attend = engine.attend and self._attend

    def search(
        self,
        source_ids: Any,
        beam_size: int,
        alpha: float,
        extra_length: int,
        n: int = 1,
        prefixes: Any = None,
    ) -> Found:
        """Searches for the best outputs; see `BeamSearch`. Prefixes raise T2TError."""
        _refuse(prefixes)
        return _in_text_order(*self._engine.search(source_ids, beam_size, alpha, extra_length, n))

    def sampler(self, source_ids: Any, *settings: Any) -> Found:
        """Draws outputs; see `Sampler`. Prefixes, the last setting, raise T2TError."""
        *others, prefixes = settings
        _refuse(prefixes)
        return _in_text_order(*self._engine.sampler(source_ids, *others))

    def scorer(self, source_ids: Any, target_ids: Any) -> Any:
        """Scores given outputs; see `Scorer`."""
        return self._engine.scorer(source_ids, reverse(target_ids))

    def _attend(self, source_ids: Any, target_ids: Any) -> Any:
        assert self._engine.attend
        return self._engine.attend(source_ids, reverse(target_ids))

    def annotate(self, source_ids: Any, target_ids: Any) -> Annotations:
        """Annotates given outputs; see `Annotator`. There are no heads, since they refuse the model."""
        found = self._engine.annotate(source_ids, reverse(target_ids))
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


def _in_text_order(ids: Any, scores: Any) -> Found:
    return reverse(ids), np.asarray(scores)


def _refuse(prefixes: Any) -> None:
    if prefixes is not None:
        raise T2TError(
            "this model has reverse_target: it writes the end of an output first, so that no beginning can "
            "be forced"
        )
