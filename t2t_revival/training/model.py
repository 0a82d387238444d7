"""`TrainingTransformer`: the decoder's output and the loss in one step, parts of a batch side by side."""

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
from t2t_revival.model.dropout import replica
from t2t_revival.model.products import replace_matrices
from t2t_revival.training.guided_alignment import alignment_losses
from t2t_revival.training.lora import add_adapters
from t2t_revival.training.loss import TokenCrossEntropy, linear_cross_entropy
from t2t_revival.utils.keras_hooks import WithoutSymbolicBuild, has_metrics


@keras.saving.register_keras_serializable("t2t_revival")
class TrainingTransformer(WithoutSymbolicBuild, Transformer):
    """A `Transformer` whose training step goes from the decoder's output to the loss without logits between.

    Weights, names and all else are those of `Transformer`. Only `call` with `training=True` differs: it
    returns the decoder's output, and logits beside it if the model was compiled with metrics. `compute_loss`
    takes the decoder's output to the loss, a `TokenCrossEntropy`. The metric "cross_entropy" is the
    plain cross-entropy, which can be compared with that of other data as the smoothed loss cannot.

    Args:
        hparams: see `Transformer`.
        vocab_size: see `Transformer`.
        num_parallel_batches: parts that a batch is split into while training. They depend on each other only
            in the sum of their losses, so that a CPU with several cores computes them side by side.
        **kwargs: see `Transformer`.

    Attributes:
        several_workers: whether it is trained under a strategy of several processes.
        replica: returns the number of the replica that computes; `None` where there is one.
        replicas: number of replicas.
        loss_sums: returns the sums over tokens of smoothed and of plain cross-entropy times weight, of the
            decoder's output [tokens, hidden], embeddings, labels and weights [tokens].
        adapters: matrices that low-rank adapters change (`lora_rank`), and with which.

    Example:
        model = TrainingTransformer(registry.hparams("base"), vocab_size=37000)
        model.compile(optimizer="adam", loss=TokenCrossEntropy(label_smoothing=0.1))
    """

    def __init__(
        self, hparams: HParams, vocab_size: int, num_parallel_batches: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(hparams, vocab_size, **kwargs)
        self.num_parallel_batches = num_parallel_batches
        self.several_workers = False
        self.replica: Callable[[], Any] | None = None
        self.replicas = 1
        self.loss_sums: Callable[[Any, Any, Any, Any], tuple[Any, Any]] = self._loss_sums
        metric = keras.metrics.Mean(name="cross_entropy")
        self._cross_entropy = lambda: metric  # an attribute would be stored with the weights

    @property
    def metrics(self) -> list[Any]:
        """Keras's metrics, and the plain cross-entropy."""
        return [*super().metrics, self._cross_entropy()]

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        self.adapters = add_adapters(self, self.hparams.lora_rank)

    def call(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Returns logits, [batch, target, vocab]; while training, the decoder's output.

        Args:
            inputs: see `Transformer.call`; "alignments" are for `compute_loss`.
            training: whether the model is trained, and dropout active.

        Returns:
            While training, a list of [rows of the part, target, hidden], one for each part of the batch, and
            the logits, if the model was compiled with metrics; else (). With `guided_alignment_weight`, each
            part is a tuple of this and the weights of the guided head, [rows, target, source].
        """
        with replace_matrices(self.adapters):
            return self._training_output(inputs) if training else super().call(inputs)

    def _training_output(self, inputs: dict[str, Any]) -> Any:
        sides = [self._parts(inputs[side]) for side in ("inputs", "targets")]
        with replica(self.replica()) if self.replica else nullcontext():
            parts = [self._part(source, targets) for source, targets in zip(*sides, strict=True)]
        if not has_metrics(self):
            return parts, ()
        hidden, _ = self._hidden_and_attention(parts)
        return parts, self.softmax_embedding(ops.concatenate(hidden), reverse=True)

    def _part(self, source: Any, targets: Any) -> Any:
        """Returns the decoder's output; with `guided_alignment_weight`, also the guided head's weights."""
        if not self.hparams.guided_alignment_weight:
            return self.hidden({"inputs": source, "targets": targets}, training=True)
        encoded = self.encode(source, training=True)
        how = {"training": True, "return_attention_scores": True}
        hidden, weights = self.decode(targets, source, encoded, **how)
        layer, head = self.hparams.guided_head
        return hidden, weights[-1][:, layer, head]

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Returns the sum over tokens of smoothed cross-entropy times weight; updates "cross_entropy".

        While training, all gradients of a loss that is not finite are NaN, for the optimizer to see.

        Args:
            x: with "alignments", float [batch, target, source], where `guided_alignment_weight` is set.
            y: labels, int [batch, target].
            y_pred: output of `call` with the same `training`.
            sample_weight: float [batch, target]; `None` weighs each token 1, padding too.
            training: whether `y_pred` is that of training.

        Returns:
            float32 scalar.

        Raises:
            TypeError: the model was compiled with a loss that is not a `TokenCrossEntropy`.
        """
        if not training:
            self._update_cross_entropy(TokenCrossEntropy()(y, y_pred, sample_weight), y)
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if not isinstance(self.loss, TokenCrossEntropy):
            raise TypeError(f"loss={self.loss}: a TrainingTransformer trains with TokenCrossEntropy")
        if sample_weight is None:
            sample_weight = ops.ones_like(y, dtype="float32")
        loss, plain = self.token_losses(x, y, y_pred, sample_weight)
        self._update_cross_entropy(plain, y)
        return loss

    def token_losses(self, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Returns the sums over tokens of smoothed and of plain cross-entropy times weight.

        Arguments are those of `compute_loss`; `y_pred` is that of training.
        """
        hidden, attention = self._hidden_and_attention(y_pred[0])
        sides = self._parts(y), self._parts(sample_weight)
        losses = [self._losses_of_part(*part) for part in zip(hidden, *sides, strict=True)]
        loss = sum(smoothed for smoothed, _ in losses)
        if weight := self.hparams.guided_alignment_weight:
            parts = zip(attention, self._parts(x["alignments"]), sides[1], strict=True)
            loss += weight * sum(ops.sum(alignment_losses(*pair) * weights) for *pair, weights in parts)
        return loss * ops.where(ops.isfinite(loss), 1.0, math.nan), sum(plain for _, plain in losses)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Updates the metrics that the model was compiled with, and returns all.

        Args:
            x: not used.
            y: labels, int [batch, target].
            y_pred: logits, or what `call` returns while training.
            sample_weight: float [batch, target], or `None`.
        """
        if isinstance(y_pred, tuple):
            _, y_pred = y_pred
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def train_step(self, *arguments: Any) -> Any:
        """Returns Keras's metrics by name, and the optimizer's progress; see Keras's `train_step`.

        Where several workers train, values have an axis 0, over which Keras averages them.
        """
        logs = super().train_step(*arguments)
        if keras.backend.backend() != "tensorflow" or not hasattr(self.optimizer, "progress"):
            return logs
        logs = {**logs, **self.optimizer.progress()}
        return (
            {name: ops.reshape(value, (1,)) for name, value in logs.items()} if self.several_workers else logs
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_parallel_batches": self.num_parallel_batches}

    def _hidden_and_attention(self, parts: Any) -> tuple[list[Any], list[Any]]:
        """Returns the two sides of what `_part` returns of each part; the latter may be empty."""
        if not self.hparams.guided_alignment_weight:
            return parts, []
        hidden, attention = zip(*parts, strict=True)
        return list(hidden), list(attention)

    def _update_cross_entropy(self, plain: Any, labels: Any) -> None:
        """Updates the metric as Keras does that of the loss, of which this replica has a part."""
        self._cross_entropy().update_state(plain * self.replicas, sample_weight=ops.shape(labels)[0])

    def _losses_of_part(self, hidden: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
        """Returns the weighted sums of smoothed and of plain cross-entropy."""
        return self.loss_sums(
            ops.reshape(hidden, (-1, self.hparams.hidden_size)),  # [tokens, hidden]
            ops.copy(self.softmax_embedding.embeddings),
            ops.reshape(labels, (-1,)),
            ops.reshape(weights, (-1,)),
        )

    def _loss_sums(self, x: Any, embeddings: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
        both = linear_cross_entropy(x, embeddings, labels, self.loss.label_smoothing)
        smoothed, plain = (ops.sum(losses * weights) for losses in both)
        return smoothed, plain

    def _parts(self, x: Any) -> list[Any]:
        """[batch, ...] -> a list of `num_parallel_batches` parts, [rows, ...]."""
        rows = ops.shape(x)[0]
        borders = [rows * part // self.num_parallel_batches for part in range(self.num_parallel_batches + 1)]
        return [x[start:end] for start, end in pairwise(borders)]
