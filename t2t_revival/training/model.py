"""`TrainingTransformer`: from a batch to its losses without logits between, parts of it side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

from keras import ops

from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer
from t2t_revival.model.dropout import replica
from t2t_revival.model.products import replace_matrices
from t2t_revival.training.guided_alignment import alignment_losses
from t2t_revival.training.lora import add_adapters
from t2t_revival.training.loss import linear_cross_entropy


class TrainingTransformer(Transformer):
    """A `Transformer` that goes from the decoder's output to the loss without logits between.

    Weights, names and all else are those of `Transformer`. Only `call` with `training=True` differs: it
    returns the decoder's output, which `token_losses` takes to the losses.

    Args:
        hparams: see `Transformer`; `label_smoothing` is the loss's.
        vocab_size: see `Transformer`.
        num_parallel_batches: parts that a batch is split into while training. They depend on each other only
            in the sum of their losses, so that a CPU with several cores computes them side by side.
        **kwargs: see `Transformer`.

    Attributes:
        replica: returns the number of the replica that computes; `None` where there is one.
        loss_sums: returns the sums over tokens of smoothed and of plain cross-entropy times weight, of the
            decoder's output [tokens, hidden], embeddings, labels and weights [tokens].
        adapters: matrices that low-rank adapters change (`lora_rank`), and with which.
    """

    def __init__(
        self, hparams: HParams, vocab_size: int, num_parallel_batches: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(hparams, vocab_size, **kwargs)
        self.num_parallel_batches = num_parallel_batches
        self.replica: Callable[[], Any] | None = None
        self.loss_sums: Callable[[Any, Any, Any, Any], tuple[Any, Any]] = self._loss_sums

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        self.adapters = add_adapters(self, self.hparams.lora_rank)

    def call(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Returns logits, [batch, target, vocab]; while training, the decoder's output.

        Args:
            inputs: see `Transformer.call`; "alignments" are for `token_losses`.
            training: whether the model is trained, and dropout active.

        Returns:
            While training, a list of [rows of the part, target, hidden], one for each part of the batch. With
            `guided_alignment_weight`, each part is a tuple of this and the weights of the guided head, [rows,
            target, source].
        """
        with replace_matrices(self.adapters):
            if not training:
                return super().call(inputs)
            sides = [self._parts(inputs[side]) for side in ("inputs", "targets")]
            with replica(self.replica()) if self.replica else nullcontext():
                return [self._part(source, targets) for source, targets in zip(*sides, strict=True)]

    def _part(self, source: Any, targets: Any) -> Any:
        """Returns the decoder's output; with `guided_alignment_weight`, also the guided head's weights."""
        if not self.hparams.guided_alignment_weight:
            return self.hidden({"inputs": source, "targets": targets}, training=True)
        encoded = self.encode(source, training=True)
        how = {"training": True, "return_attention_scores": True}
        hidden, weights = self.decode(targets, source, encoded, **how)
        layer, head = self.hparams.guided_head
        return hidden, weights[-1][:, layer, head]

    def token_losses(self, x: Any, y: Any, parts: Any, weights: Any) -> tuple[Any, Any]:
        """Returns the sums over tokens of smoothed and of plain cross-entropy times weight, float32 scalars.

        All gradients of a loss that is not finite are NaN, for the optimizer to see.

        Args:
            x: with "alignments", float [batch, target, source], where `guided_alignment_weight` is set.
            y: labels, int [batch, target].
            parts: what `call` returned while training.
            weights: of the tokens, float [batch, target].
        """
        weight = self.hparams.guided_alignment_weight
        hidden, attention = zip(*parts, strict=True) if weight else (parts, ())
        sides = self._parts(y), self._parts(weights)
        losses = [
            self.loss_sums(
                ops.reshape(output, (-1, self.hparams.hidden_size)),  # [tokens, hidden]
                ops.copy(self.softmax_embedding.embeddings),
                ops.reshape(labels, (-1,)),
                ops.reshape(token_weights, (-1,)),
            )
            for output, labels, token_weights in zip(hidden, *sides, strict=True)
        ]
        loss = sum(smoothed for smoothed, _ in losses)
        if weight:
            triples = zip(attention, self._parts(x["alignments"]), sides[1], strict=True)
            loss += weight * sum(ops.sum(alignment_losses(*pair) * weights) for *pair, weights in triples)
        return loss * ops.where(ops.isfinite(loss), 1.0, math.nan), sum(plain for _, plain in losses)

    def _loss_sums(self, x: Any, embeddings: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
        both = linear_cross_entropy(x, embeddings, labels, self.hparams.label_smoothing)
        smoothed, plain = (ops.sum(losses * weights) for losses in both)
        return smoothed, plain

    def _parts(self, x: Any) -> list[Any]:
        """[batch, ...] -> a list of `num_parallel_batches` parts, [rows, ...]."""
        rows = ops.shape(x)[0]
        borders = [rows * part // self.num_parallel_batches for part in range(self.num_parallel_batches + 1)]
        return [x[start:end] for start, end in pairwise(borders)]
