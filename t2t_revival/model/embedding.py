"""Sections 3.4 and 3.5: embeddings, softmax and positional encoding."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_revival.model.layer import Layer
from t2t_revival.model.products import is_replaced, matmul, take, transpose

MAX_WAVELENGTH = 1e4
LARGE = 2**26  # weights of an embedding; those of 65,536 tokens of `big`


class SoftmaxKernel(NamedTuple):
    """Matrix and bias that make logits of vectors.

    Attributes:
        matrix: [hidden, vocab], a tensor or a `Matrix`.
        bias: [vocab]; empty without one.
    """

    matrix: Any
    bias: Any = ()

    def logits(self, rows: Any) -> Any:
        """[rows, hidden] -> scores of all tokens before the softmax, [rows, vocab]."""
        logits = self._multiply(rows)
        return logits if isinstance(self.bias, tuple) else ops.add(logits, ops.cast(self.bias, logits.dtype))

    def _multiply(self, rows: Any) -> Any:
        return matmul(rows, self.matrix)


class SoftmaxRows(SoftmaxKernel):
    """A kernel whose matrix is [vocab, hidden], so that a large one needs no transposed copy."""

    def _multiply(self, rows: Any) -> Any:
        return ops.einsum("rc,vc->rv", rows, self.matrix)


@keras.saving.register_keras_serializable("t2t_revival")
class TokenEmbedding(Layer):
    """Section 3.4: one vector for each token; the same matrix turns vectors into logits.

    Args:
        vocab_size: number of tokens.
        hidden_size: d_model.
        softmax_bias: whether logits have a bias, which the paper has not.

    Example:
        embedding = TokenEmbedding(vocab_size=37000, hidden_size=512)
        vectors = embedding(ids)                    # int [batch, length] -> [batch, length, 512]
        logits = embedding(vectors, reverse=True)   # [batch, length, 37000]

    Reference: Vaswani et al., 2017, section 3.4; T2T's `symbol_bottom` and `symbol_top`.
    """

    def __init__(self, vocab_size: int, hidden_size: int, softmax_bias: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.has_softmax_bias = softmax_bias

    def build(self, input_shape: Any = None) -> None:
        shape = (self.vocab_size, self.hidden_size)
        normal = keras.initializers.RandomNormal(stddev=self.hidden_size**-0.5)
        self.embeddings = self.add_weight(name="embeddings", shape=shape, initializer=normal)
        if self.has_softmax_bias:
            self.softmax_bias = self.add_weight(name="softmax_bias", shape=shape[:1], initializer="zeros")

    def call(self, x: Any, reverse: bool = False) -> Any:
        """Ids, int [...] -> [..., hidden], multiplied by sqrt(d_model); padding is 0.

        With `reverse`, [..., hidden] -> logits, the scores of all tokens before the softmax, [..., vocab].
        """
        if reverse:
            rows = ops.reshape(x, (-1, self.hidden_size))  # [positions, hidden]
            return ops.reshape(self.kernel().logits(rows), (*ops.shape(x)[:-1], self.vocab_size))
        vectors = take(self.embeddings, x)
        scales = ops.cast(ops.not_equal(x, 0), vectors.dtype) * self.hidden_size**0.5  # [...]
        return vectors * ops.expand_dims(scales, -1)

    def kernel(self, ids: Any = None) -> SoftmaxKernel:
        """Returns what makes logits, in the layer's precision.

        With `ids`, int [tokens], only those of these tokens, [..., tokens].
        """
        bias = self.softmax_bias if self.has_softmax_bias else ()
        if ids is None and self.vocab_size * self.hidden_size >= LARGE and not is_replaced(self.embeddings):
            return SoftmaxRows(ops.cast(self.embeddings, self.compute_dtype), bias)
        if ids is None:
            return SoftmaxKernel(transpose(self.embeddings, self.compute_dtype), bias)
        matrix = ops.transpose(ops.cast(take(self.embeddings, ids), self.compute_dtype))
        return SoftmaxKernel(matrix, ops.take(bias, ids) if self.has_softmax_bias else ())


def sinusoids(positions: Any, hidden_size: int, as_t2t: bool = False, first: int = 0) -> Any:
    """Section 3.5 as printed: sine in the even channels, cosine in the odd ones.

    Args:
        positions: float [length], counted from 0.
        hidden_size: d_model, even.
        as_t2t: whether all sines come before all cosines, and the longest wavelength is that of the last
            channel, not one step after it (`get_timing_signal_1d`).
        first: the number of the first position: 2 in fairseq.

    Returns:
        [length, hidden].
    """
    waves = hidden_size // 2
    steps = max(waves - 1, 1) if as_t2t else waves
    rates = ops.exp(ops.arange(waves, dtype="float32") * (-math.log(MAX_WAVELENGTH) / steps))
    angles = (positions[:, None] + first) * rates[None, :]  # [length, hidden / 2]
    sines, cosines = ops.sin(angles), ops.cos(angles)
    if as_t2t:
        return ops.concatenate([sines, cosines], axis=-1)
    return ops.reshape(ops.stack([sines, cosines], axis=-1), (-1, hidden_size))


def positions_in(mask: Any) -> Any:
    """Returns the positions of tokens in their segments, counted from 0.

    Args:
        mask: whether two tokens are of one segment, bool [batch, length, length].

    Returns:
        int32 [batch, length].
    """
    places = ops.arange(ops.shape(mask)[1])
    before = ops.less(places[None, :], places[:, None])
    return ops.sum(ops.cast(ops.logical_and(mask, before), "int32"), axis=2)


ENCODINGS: dict[str, Callable[..., Any]] = {
    "sinusoid": sinusoids,
    "timing": partial(sinusoids, as_t2t=True),
    "fairseq": partial(sinusoids, as_t2t=True, first=2),
}


@keras.saving.register_keras_serializable("t2t_revival")
class PositionalEncoding(Layer):
    """Section 3.5: adds the encoding of its position to each vector.

    Args:
        hidden_size: d_model.
        encoding: "sinusoid" as printed, "timing" as T2T, "fairseq" as that from 2 on, "emb" for a learned
            vector of each position; any other adds none, since attention tells positions.
        max_length: number of learned vectors; positions beyond share the last one.
        target_space: whether a vector that is the same at all positions is added too, as T2T does to tell
            the encoder what is asked for (`target_space_embedding`, of which a problem has one row).

    Example:
        x = PositionalEncoding(hidden_size=512)(x)    # [batch, length, 512] -> the same shape

    Reference: Vaswani et al., 2017, section 3.5; T2T's `add_timing_signal_1d`.
    """

    def __init__(
        self,
        hidden_size: int,
        encoding: str = "sinusoid",
        max_length: int = 256,
        target_space: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.encoding = encoding
        self.max_length = max_length
        self.has_target_space = target_space

    def build(self, input_shape: Any = None) -> None:
        if self.encoding == "emb":
            shape = (self.max_length, self.hidden_size)
            normal = keras.initializers.RandomNormal(stddev=self.hidden_size**-0.5)
            self.embeddings = self.add_weight(name="embeddings", shape=shape, initializer=normal)
        if self.has_target_space:
            size = (self.hidden_size,)
            self.target_space = self.add_weight(name="target_space", shape=size, initializer="zeros")

    def call(self, x: Any, positions: Any = None) -> Any:
        """[batch, length, hidden], or [rows, hidden] of one position -> the same shape.

        `positions` are int [length], or [1] for one, counted from 0; or [batch, length], where several
        sentences share a row. `None` numbers them from 0 on.
        """
        if self.encoding == "emb" or self.encoding in ENCODINGS:
            if positions is None or len(positions.shape) == 2:
                encodings = self.encode(ops.arange(ops.shape(x)[1]))
                encodings = encodings if positions is None else ops.take(encodings, positions, axis=0)
            else:
                encodings = self.encode(positions)
            return x + ops.cast(encodings, x.dtype)
        return x + ops.cast(self.target_space, x.dtype) if self.has_target_space else x

    def encode(self, positions: Any) -> Any:
        """Returns the encodings of positions: int [length] -> [length, hidden]."""
        if self.encoding == "emb":
            vectors = take(self.embeddings, ops.minimum(positions, self.max_length - 1))
        else:
            positions = ops.cast(positions, "float32")
            vectors = ENCODINGS[self.encoding](positions, self.hidden_size)
        return vectors + self.target_space if self.has_target_space else vectors
