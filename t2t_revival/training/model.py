"""The model as it is trained: decoder and loss in one piece, parts of a batch side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import keras
from keras import ops

from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer
from t2t_revival.model.regularization import replica
from t2t_revival.training.loss import TokenCrossEntropy, linear_cross_entropy


@keras.saving.register_keras_serializable("t2t_revival")
class TrainingTransformer(Transformer):
    """A `Transformer` whose training step goes from the decoder's output to the loss without logits between.

    Weights, names and all else are those of `Transformer`. Only `call` with `training=True` differs: it
    gives the decoder's output, and `compute_loss` takes that. Compiled with a `TokenCrossEntropy`, beside
    which the metric "cross_entropy" is measured: the plain cross-entropy, which can be compared with that of
    other data as the smoothed loss cannot.

    Args:
        hparams: see `Transformer`.
        vocab_size: see `Transformer`.
        streams: parts that a batch is cut into while training. They depend on each other only in the sum of
            their losses, so that a CPU with several cores computes them side by side.

    Attributes:
        several_workers: whether it is trained under a strategy of several processes.
        replica: gives the number of the replica that computes; None: there is one.
        replicas: how many there are.
    """

    def __init__(
        self, hparams: HParams, vocab_size: int, name: str = "transformer", streams: int = 1
    ) -> None:
        super().__init__(hparams, vocab_size, name)
        self.streams = streams
        self.several_workers = False
        self.replica: Callable[[], Any] | None = None
        self.replicas = 1
        metric = keras.metrics.Mean(name="cross_entropy")
        self._cross_entropy = lambda: metric  # an attribute would be stored with the weights

    @property
    def metrics(self) -> list[Any]:
        """Those of Keras, and the plain cross-entropy."""
        return [*super().metrics, self._cross_entropy()]

    def call(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Logits, [batch, target, vocab]; while training, the decoder's output of each part of the batch.

        Args:
            inputs: see `Transformer.call`.
            training: whether the model is trained, and dropout active.

        Returns:
            While training, a list of [rows of the part, target, hidden].
        """
        if not training:
            return super().call(inputs)
        sides = [self._parts(inputs[side]) for side in ("inputs", "targets")]
        with replica(self.replica()) if self.replica else nullcontext():
            return [
                self.hidden({"inputs": source, "targets": targets}, training)
                for source, targets in zip(*sides, strict=True)
            ]

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Sum over tokens of smoothed cross-entropy times weight; updates the metric of the plain one.

        While training, all gradients of a loss that is not finite are NaN, for the optimizer to see.

        Args:
            x: not looked at.
            y: labels, int [batch, target].
            y_pred: what `call` gave for the same `training`.
            sample_weight: float [batch, target]; None: 1 for each token, padding too.
            training: whether `y_pred` is the decoder's output.

        Returns:
            float32 scalar.

        Raises:
            TypeError: the model was compiled with another loss than a `TokenCrossEntropy`.
        """
        if not training:
            self._note_cross_entropy(TokenCrossEntropy()(y, y_pred, sample_weight), y)
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if not isinstance(self.loss, TokenCrossEntropy):
            raise TypeError(f"a TrainingTransformer trains with TokenCrossEntropy, not {self.loss}")
        if sample_weight is None:
            sample_weight = ops.ones_like(y, dtype="float32")
        parts = zip(y_pred, self._parts(y), self._parts(sample_weight), strict=True)
        losses = [self._losses_of_part(*part) for part in parts]
        loss = sum(smoothed for smoothed, _ in losses)
        self._note_cross_entropy(sum(plain for _, plain in losses), y)
        return loss * ops.where(ops.isfinite(loss), 1.0, math.nan)

    def get_metrics_result(self) -> dict[str, Any]:
        """Metrics by name. Of several workers Keras takes the mean over axis 0, which scalars do not have."""
        metrics = super().get_metrics_result()
        if not self.several_workers:
            return metrics
        return {name: ops.reshape(value, (1,)) for name, value in metrics.items()}

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Keras would build by a batch what `compile_model` has built; over several workers it cannot."""

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "streams": self.streams}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> TrainingTransformer:
        return cls(HParams(**config["hparams"]), config["vocab_size"], config["name"], config["streams"])

    def _note_cross_entropy(self, plain: Any, labels: Any) -> None:
        """Updates the metric as Keras does that of the loss, which this replica has a part of."""
        self._cross_entropy().update_state(plain * self.replicas, sample_weight=ops.shape(labels)[0])

    def _losses_of_part(self, hidden: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
        """The weighted sums of smoothed and of plain cross-entropy."""
        both = linear_cross_entropy(
            ops.reshape(hidden, (-1, self.hparams.hidden_size)),  # [tokens, hidden]
            ops.copy(self.softmax_embedding.embeddings),
            ops.reshape(labels, (-1,)),
            self.loss.label_smoothing,
        )
        flat = ops.reshape(weights, (-1,))
        smoothed, plain = (ops.sum(losses * flat) for losses in both)
        return smoothed, plain

    def _parts(self, x: Any) -> list[Any]:
        """[batch, ...] -> a list of `streams` parts, [rows, ...]."""
        rows = ops.shape(x)[0]
        borders = [rows * part // self.streams for part in range(self.streams + 1)]
        return [x[start:end] for start, end in pairwise(borders)]
