"""Weights of a served model in fewer bits; it computes in bfloat16 then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from t2t_revival.decoding.beam_search import cast_weights

if TYPE_CHECKING:
    from t2t_revival.model import Transformer

# For each scheme the Keras precision of its model: the types of its variables and of its computations.
PRECISIONS = {"none": "float32", "bfloat16": "bfloat16", "int8": "mixed_bfloat16"}
LARGEST = 127  # the largest int8 that has its negative


class Int8Weights:
    """A model's matrices as int8 with a scale for each output channel; biases and norms stay as they are.

    Args:
        model: of mixed precision. Its other variables are used, its matrices are copied.

    Attributes:
        variables: what a SavedModel of the weights must hold.
    """

    def __init__(self, model: Transformer) -> None:
        self._dtype = model.compute_dtype
        self._matrices = []
        self._others = [weight for weight in model.weights if not _is_matrix(weight)]
        self.variables = [weight.value for weight in self._others]
        for matrix in filter(_is_matrix, model.weights):
            # A row of an embedding is a token; a column of any other matrix is an output.
            integers, scales = quantized(np.asarray(matrix), 0 if matrix.name == "embeddings" else 1)
            pair = tf.Variable(integers, trainable=False), tf.Variable(scales, trainable=False)
            self._matrices.append((matrix, *pair))
            self.variables.extend(pair)

    def __call__(self) -> list[tuple[Any, Any]]:
        """Weights of the model with the values that stand for them, in the type that it computes in."""
        whole = [
            (matrix, tf.cast(tf.cast(integers, tf.float32) * scales, self._dtype))
            for matrix, integers, scales in self._matrices
        ]
        return [*whole, *cast_weights(self._others, self._dtype)]


def _is_matrix(weight: Any) -> bool:
    return weight.trainable and len(weight.shape) == 2


def quantized(matrix: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest multiples of a scale.

    Args:
        matrix: float32, rank 2.
        axis: what has a scale for each index.

    Returns:
        int8 of the matrix's shape, and float32 scales, of size 1 along the other axis. What is no number
        makes its scale none.
    """
    steps = np.abs(matrix).max(axis=1 - axis, keepdims=True) / LARGEST
    scales = np.where(steps == 0, 1, steps).astype(np.float32)
    return np.nan_to_num(np.rint(matrix / scales)).astype(np.int8), scales
