"""`TrainingTransformer`: from a batch to its losses without logits between, parts of it side by side.

`build_model` and `compile_model` make it, under any Keras backend.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from typing import Any

from keras import ops

from t2t_revival.checkpoints.directory import check_paths
from t2t_revival.checkpoints.file import A, B, adapter_name, is_adapter, weight_path
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer
from t2t_revival.model.dropout import replica
from t2t_revival.model.products import PROJECTIONS, Matrix, replace_matrices
from t2t_revival.model.transformer import Segments
from t2t_revival.training.loss import alignment_losses, linear_cross_entropy
from t2t_revival.training.optimizer import make_optimizer
from t2t_revival.utils.keras_config import check_usable

PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")


class AdaptedMatrix(Matrix):
    """A matrix W and its adapter: W + A B, of which A and B alone are trained.

    Args:
        weight: [channels, outputs].
        a: [channels, rank], random at first.
        b: [rank, outputs], zeros at first, so that training starts with W.

    Reference: Hu et al., 2022, "LoRA: Low-Rank Adaptation of Large Language Models", with alpha = rank.
    """

    def __init__(self, weight: Any, a: Any, b: Any) -> None:
        self.weight, self.a, self.b = weight, a, b

    def multiply(self, rows: Any) -> Any:
        weight, a, b = (ops.cast(matrix, rows.dtype) for matrix in (self.weight, self.a, self.b))
        return ops.matmul(rows, weight) + ops.matmul(ops.matmul(rows, a), b)

    def take(self, ids: Any) -> Any:
        return ops.take(self.weight, ids, axis=0) + ops.matmul(ops.take(self.a, ids, axis=0), self.b)

    def transpose(self) -> Any:
        return ops.transpose(self.weight + ops.matmul(self.a, self.b))


def add_adapters(model: Any, rank: int) -> list[tuple[Any, AdaptedMatrix]]:
    """Adds an adapter for each matrix of attention and feed-forward networks to a model that is being built.

    Returns each matrix with its adapter; none if `rank` is 0.
    """
    weights = [weight for weight in model.weights if weight.name in PROJECTIONS] if rank else []
    pairs = []
    for weight in weights:
        channels, outputs = weight.shape
        path = weight.path.partition("/")[2]
        a = model.add_weight(name=adapter_name(A, path), shape=(channels, rank), initializer="he_uniform")
        b = model.add_weight(name=adapter_name(B, path), shape=(rank, outputs), initializer="zeros")
        pairs.append((weight, AdaptedMatrix(weight, a, b)))
    return pairs


@contextmanager
def merged(adapters: list[tuple[Any, AdaptedMatrix]]) -> Iterator[None]:
    """Adds adapters to their matrices within the block, for whoever reads the matrices alone."""
    own = [(variable, variable.numpy()) for weight, adapter in adapters for variable in (weight, adapter.b)]
    for weight, adapter in adapters:
        weight.assign_add(ops.matmul(adapter.a, adapter.b))
        adapter.b.assign(ops.zeros_like(adapter.b))
    try:
        yield
    finally:
        for variable, values in own:
            variable.assign(values)


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
            of_model = {name: self._parts(ids) for name, ids in inputs.items() if name != "alignments"}
            parts = zip(*of_model.values(), strict=True)
            with replica(self.replica()) if self.replica else nullcontext():
                return [self._part(dict(zip(of_model, part, strict=True))) for part in parts]

    def _part(self, inputs: dict[str, Any]) -> Any:
        """Returns the decoder's output; with `guided_alignment_weight`, also the guided head's weights."""
        if not self.hparams.guided_alignment_weight:
            return self.hidden(inputs, training=True)
        source, segments = inputs["inputs"], Segments.of(inputs)
        encoded = self.encode(source, training=True, segments=segments)
        scores: dict[str, Any] = {"training": True, "return_attention_scores": True, "segments": segments}
        hidden, _, weights = self.decode(inputs["targets"], source, encoded, **scores)
        layer, head = self.hparams.guided_head
        return hidden, weights[:, layer, head]

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
                *self._with_bias(ops.reshape(output, (-1, self.hparams.hidden_size))),  # [tokens, hidden]
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

    def _with_bias(self, x: Any) -> tuple[Any, Any]:
        """Returns x, [tokens, hidden], and the embeddings, whose product are the logits.

        A bias of the softmax is a column more, beside a channel that is always 1.
        """
        embedding = self.softmax_embedding
        embeddings = ops.copy(embedding.embeddings)
        if not embedding.has_softmax_bias:
            return x, embeddings
        columns = [embeddings, ops.copy(embedding.softmax_bias)[:, None]]
        return ops.concatenate([x, ops.ones_like(x[:, :1])], axis=1), ops.concatenate(columns, axis=1)

    def _loss_sums(self, x: Any, embeddings: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
        both = linear_cross_entropy(x, embeddings, labels, self.hparams.label_smoothing)
        smoothed, plain = (ops.sum(losses * weights) for losses in both)
        return smoothed, plain

    def _parts(self, x: Any) -> list[Any]:
        """[batch, ...] -> a list of `num_parallel_batches` parts, [rows, ...]."""
        rows = ops.shape(x)[0]
        borders = [rows * part // self.num_parallel_batches for part in range(self.num_parallel_batches + 1)]
        return [x[start:end] for start, end in pairwise(borders)]


def build_model(
    hparams: HParams,
    vocab_size: int,
    precision: str = "float32",
    num_parallel_batches: int = 1,
    target_vocab_size: int | None = None,
) -> TrainingTransformer:
    """Returns a `TrainingTransformer` that computes in `precision`; its weights are float32.

    Raises:
        T2TError: `precision` is not one of `PRECISIONS`, or Keras's configuration is not usable.
    """
    check_usable()
    if precision not in PRECISIONS:
        raise T2TError(f"--precision={precision} is not one of {', '.join(PRECISIONS)}")
    own = {"target_vocab_size": target_vocab_size, "dtype": precision}
    return TrainingTransformer(hparams, vocab_size, num_parallel_batches, **own)


def compile_model(model: TrainingTransformer, hparams: HParams, accumulate: int = 1) -> TrainingTransformer:
    """Compiles a model with the optimizer of the weights that are trained; in float16, the loss is scaled.

    Args:
        model: compiled in place, and returned.
        hparams: reads `freeze`, `lora_rank` and what `make_optimizer` reads.
        accumulate: number of micro-batches of an update.

    Raises:
        T2TError: as `freeze`; or checkpoints could not tell two weights or two moments apart.
    """
    if hparams.lora_rank:
        for weight in model.trainable_variables:
            weight.trainable = is_adapter(weight.path)
    freeze(model, hparams.freeze)
    model.compile(make_optimizer(hparams, accumulate, model.compute_dtype), auto_scale_loss=False)
    model.optimizer.build(model.trainable_variables)
    check_paths(model)
    return model


def freeze(model: TrainingTransformer, pattern: str) -> None:
    """Has training leave the weights as they are whose paths have a match of a regular expression.

    The path of an adapter is that of its matrix.

    Raises:
        T2TError: no weight has one, or every weight.
    """
    if not pattern:
        return
    weights = model.trainable_variables
    frozen = [weight for weight in weights if re.search(pattern, weight_path(weight.path))]
    if len(frozen) in (0, len(weights)):
        number = "all weights: nothing would be trained" if frozen else "no weight"
        raise T2TError(f"--freeze={pattern} matches {number}; they have paths such as {weights[0].path}")
    for weight in frozen:
        weight.trainable = False
