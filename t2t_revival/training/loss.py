"""Section 5.4: label-smoothed cross-entropy."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops


def smoothed_cross_entropy(logits: Any, labels: Any, label_smoothing: float) -> Any:
    """Cross-entropy of each token against labels smoothed as in T2T (`smoothing_cross_entropy`).

    The right token has probability 1 - epsilon_ls, each of the others epsilon_ls / (vocab - 1). The
    entropy of that distribution is subtracted, as T2T does, so that the lowest value is 0.

    Args:
        logits: [tokens, vocab], float32 or bfloat16; computed in float32.
        labels: int [tokens].
        label_smoothing: epsilon_ls, at least 0 and below 1.

    Returns:
        float32 [tokens], in nats.
    """
    right, wrong = 1.0 - label_smoothing, label_smoothing / (logits.shape[-1] - 1)
    entropy = -right * math.log(right)
    if label_smoothing:
        entropy -= label_smoothing * math.log(wrong)

    @ops.custom_gradient
    def cross_entropy(logits: Any) -> Any:
        """The gradient is written out: one pass for softmax minus labels, where a backend makes several."""
        scores = ops.cast(logits, "float32")
        softmax = ops.softmax(scores, axis=-1)  # [tokens, vocab]
        log_sum = ops.max(scores, axis=-1) - ops.log(ops.max(softmax, axis=-1))  # [tokens]
        right_score = ops.take_along_axis(scores, labels[:, None], axis=-1)[:, 0]
        value = log_sum - (right - wrong) * right_score - wrong * ops.sum(scores, axis=-1)

        def gradient(*args: Any, upstream: Any = None) -> Any:
            up = args[0] if upstream is None else upstream
            slope = (softmax - wrong) * up[:, None]  # [tokens, vocab]
            at_right = (ops.exp(right_score - log_sum) - right) * up
            where = ops.stack([ops.arange(ops.shape(labels)[0], dtype=labels.dtype), labels], axis=1)
            return ops.cast(ops.scatter_update(slope, where, at_right), logits.dtype)

        return value, gradient

    return cross_entropy(logits) - entropy


@keras.saving.register_keras_serializable("t2t_revival")
class TokenCrossEntropy(keras.losses.Loss):
    """Sum over all tokens of smoothed cross-entropy times the token's weight.

    With weights of mask / (number of tokens of the global batch), as `data.batching` makes them, this is
    the loss per token, and N replicas together compute what one would: a sum of sums.

    Args:
        label_smoothing: epsilon_ls.
    """

    def __init__(
        self, label_smoothing: float = 0.0, name: str = "token_cross_entropy", **kwargs: Any
    ) -> None:
        super().__init__(name=name, reduction=kwargs.pop("reduction", "sum"), **kwargs)
        self.label_smoothing = label_smoothing

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Labels [batch, target] and logits [batch, target, vocab] -> [batch, target]."""
        shape = ops.shape(y_pred)
        flat = smoothed_cross_entropy(
            ops.reshape(y_pred, (-1, shape[-1])),
            ops.reshape(ops.cast(y_true, "int32"), (-1,)),
            self.label_smoothing,
        )
        return ops.reshape(flat, shape[:2])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "label_smoothing": self.label_smoothing}
