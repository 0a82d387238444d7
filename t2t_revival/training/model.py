"""The model as it is trained: decoder and loss in one piece."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from t2t_revival.model import Transformer
from t2t_revival.training.loss import linear_cross_entropy


@keras.saving.register_keras_serializable("t2t_revival")
class TrainingTransformer(Transformer):
    """A `Transformer` whose training step goes from the decoder's output to the loss without logits between.

    Weights, names and all else are those of `Transformer`. Only `call` with `training=True` differs: it
    gives the decoder's output, and `compute_loss` takes that. Compiled with a `TokenCrossEntropy`.
    """

    def call(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Logits, [batch, target, vocab]; while training, the decoder's output, [batch, target, hidden]."""
        return self.hidden(inputs, training) if training else super().call(inputs)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Sum over tokens of cross-entropy times weight.

        Args:
            x: not looked at.
            y: labels, int [batch, target].
            y_pred: what `call` gave for the same `training`.
            sample_weight: float [batch, target].
            training: whether `y_pred` is the decoder's output.

        Returns:
            float32 scalar.
        """
        if not training:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        losses = linear_cross_entropy(
            ops.reshape(y_pred, (-1, y_pred.shape[-1])),
            ops.copy(self.softmax_embedding.embeddings),
            ops.reshape(y, (-1,)),
            self.loss.label_smoothing,
        )
        return ops.sum(losses * ops.reshape(sample_weight, (-1,)))
