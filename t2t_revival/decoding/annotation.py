"""Details of given outputs, by one pass of the model, teacher-forced."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from t2t_revival.decoding.details import Annotations

if TYPE_CHECKING:
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.model import Transformer


class Annotator:
    """Annotates outputs.

    Args:
        model: the model; its weights may change between calls.
        alternatives: k, the number of alternatives at each position.
        heads: whose attention is returned.
        weights: see `Scorer`.

    Example:
        annotations = Annotator(model, alternatives=5)(source_ids, target_ids)
    """

    def __init__(
        self,
        model: Transformer,
        alternatives: int = 0,
        heads: AlignmentHeads | None = None,
        weights: Callable[[], AbstractContextManager[Any]] | None = None,
    ) -> None:
        self._model, self._heads = model, heads
        self._weights = weights or nullcontext
        ids = tf.TensorSpec([None, None], tf.int32)
        annotate = partial(self.annotate_in_graph, alternatives=alternatives)
        self._compiled = tf.function(annotate, input_signature=[ids, ids], autograph=False)
        self._attend = tf.function(self._attention, input_signature=[ids, ids], autograph=False)

    def __call__(self, source_ids: Any, target_ids: Any) -> Annotations:
        """Annotates outputs; ids are int32 [batch, source or target], end with EOS and are padded with 0."""
        found = self._compiled(tf.cast(source_ids, tf.int32), tf.cast(target_ids, tf.int32))
        return Annotations(*(x.numpy() for x in found))

    def attend(self, source_ids: Any, target_ids: Any) -> np.ndarray:
        """Returns the `attention` of `Annotations` alone, without the scores of the vocabulary."""
        return self._attend(tf.cast(source_ids, tf.int32), tf.cast(target_ids, tf.int32)).numpy()

    def _attention(self, source_ids: Any, target_ids: Any) -> Any:
        with self._weights():
            return self._pass(source_ids, target_ids)[1]

    def annotate_in_graph(self, source_ids: Any, target_ids: Any, alternatives: Any) -> tuple[Any, ...]:
        """Returns the tensors of `Annotations`; `alternatives` is their number."""
        with self._weights():
            logits, attention = self._pass(source_ids, target_ids)
        log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))  # [batch, target, vocab]
        values, tokens = tf.math.top_k(log_probs, alternatives)
        own = tf.gather(log_probs, target_ids, batch_dims=2)
        return own, tokens, values, attention

    def _pass(self, source_ids: Any, target_ids: Any) -> tuple[Any, Any]:
        """Returns logits and attention."""
        model = self._model
        if self._heads is None:
            logits = model({"inputs": source_ids, "targets": target_ids}, training=False)
            return logits, tf.zeros([tf.shape(source_ids)[0], 0, 0])
        encoded = model.encode(source_ids)
        hidden, weights = model.decode(target_ids, source_ids, encoded, return_attention_scores=True)
        of_layer = tf.cast(weights[-1], tf.float32)[:, self._heads.layer - 1]
        chosen = tf.gather(of_layer, [head - 1 for head in self._heads.heads], axis=1)
        return model.softmax_embedding(hidden, reverse=True), tf.reduce_mean(chosen, axis=1)
