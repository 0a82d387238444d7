"""Weights that are stored as int8 with a scale for each output channel."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from t2t_revival.decoding.search.tf_workarounds import cast_weights
from t2t_revival.model import Transformer
from t2t_revival.model.products import READ_HERE

MAX_INT8 = 127  # the range is symmetric


class Int8Weights:
    """A model's matrices as int8 with a scale for each output channel; biases and norms stay as they are.

    Args:
        model: its matrices are copied, its other variables are shared.

    Attributes:
        variables: variables that a SavedModel must hold.
    """

    def __init__(self, model: Transformer) -> None:
        self._dtype = model.compute_dtype
        self._matrices = []
        self._others = [weight for weight in model.weights if not _is_matrix(weight)]
        self.variables = [weight.value for weight in self._others]
        for matrix in filter(_is_matrix, model.weights):
            # A row of an embedding is a token; a column of any other matrix is an output.
            axis = 0 if matrix.name == "embeddings" else 1
            integers, scales = quantize_int8(np.asarray(matrix), axis)
            pair = tf.Variable(integers, trainable=False), tf.Variable(scales, trainable=False)
            self._matrices.append((matrix, *pair))
            self.variables.extend(pair)

    def dequantized(self) -> keras.StatelessScope:
        """Returns a scope in which the model computes, in its own precision, with the matrices' values."""
        scope = cast_weights(self._others, self._dtype)
        for matrix, integers, scales in self._matrices:
            value = tf.cast(tf.cast(integers, tf.float32) * scales, self._dtype)
            scope.add_update((matrix, value))
        return scope


def _is_matrix(weight: Any) -> bool:
    return weight.trainable and weight.name in READ_HERE


def quantize_int8(matrix: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Rounds a matrix to multiples of a scale per row or column.

    Args:
        matrix: float32, rank 2.
        axis: axis along which scales differ.

    Returns:
        int8 of the matrix's shape, and float32 scales, of size 1 along the other axis. NaN makes its scale
        NaN.
    """
    steps = np.abs(matrix).max(axis=1 - axis, keepdims=True) / MAX_INT8
    scales = np.where(steps == 0, 1, steps).astype(np.float32)
    return np.nan_to_num(np.rint(matrix / scales)).astype(np.int8), scales
