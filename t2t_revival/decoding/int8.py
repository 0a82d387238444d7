"""Weights as int8 with a scale for each output channel, and products in int8 by oneDNN, in stock TensorFlow.

Rows are quantised where they are multiplied, each with a scale of its own, so that a sentence's result does
not depend on its batch.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from t2t_revival.decoding.capabilities import INT8, check_held
from t2t_revival.decoding.options import FLOAT32
from t2t_revival.decoding.tf_workarounds import cast_weights
from t2t_revival.errors import T2TError
from t2t_revival.model import Transformer
from t2t_revival.model.products import READ_HERE, Matrix, replace_matrices

MAX_INT8 = 127  # the range is symmetric
# Of weights that are multiplied: CPUs without VNNI add pairs of products in 16 bits, 2 * 255 * 63 at most.
MAX_FACTOR = 63
LEAST_RANGE = 1e-30  # of a row of zeros

AttrValue = tf.compat.v1.AttrValue


class Int8Matrix(Matrix):
    """A matrix of weights as int8.

    Args:
        integers: int8 [rows, columns], the same at each call of a graph: oneDNN keeps its own copy.
        scales: float32 [1, columns]; if `transposed`, [rows, 1].
        transposed: whether the matrix that is meant is the transposed one.
    """

    def __init__(self, integers: Any, scales: Any, transposed: bool = False) -> None:
        self._integers = integers
        self._scales = scales
        self._transposed = transposed
        self._limit = tf.reshape(scales, [-1]) * MAX_INT8  # [outputs]: here, so that a loop finds both made
        self._negative_limit = -self._limit

    def multiply(self, rows: Any) -> Any:
        """Returns float32 [rows, channels] times the matrix, float32 [rows, outputs]."""
        ranges = tf.maximum(tf.reduce_max(tf.abs(rows), axis=1, keepdims=True), LEAST_RANGE)
        quantized = tf.raw_ops.QuantizeV2(
            input=rows / ranges, min_range=-1.0, max_range=1.0, T=tf.qint8, mode="SCALED"
        )
        weights = tf.bitcast(self._integers, tf.qint8)  # here, since no loop carries qint8 along
        limits = self._negative_limit, self._limit
        return quantized_matmul(quantized.output, weights, limits, self._transposed) * ranges

    def take(self, ids: Any) -> Any:
        if self._transposed:
            raise ValueError("rows of a transposed matrix are not stored together")
        scales = tf.gather(self._scales, ids) if self._scales.shape[0] > 1 else self._scales
        return tf.cast(tf.gather(self._integers, ids), tf.float32) * scales

    def transpose(self) -> Int8Matrix:
        return Int8Matrix(self._integers, self._scales, not self._transposed)


def quantized_matmul(rows: Any, weights: Any, limits: tuple[Any, Any], transposed: bool) -> Any:
    """Multiplies qint8 rows, of which 127 means 1, by constant weights.

    TensorFlow has the op for oneDNN, which rearranges the weights once, but no function for it.

    Args:
        rows: qint8 [rows, channels].
        weights: qint8 [channels, outputs], or [outputs, channels] if `transposed`.
        limits: float32 [outputs], the weights of which -127 and 127 stand for.
        transposed: see `weights`.

    Returns:
        float32 [rows, outputs].
    """
    num_outputs = weights.shape[0] if transposed else weights.shape[1]
    types = {"T1": tf.qint8, "T2": tf.qint8, "Tbias": tf.float32, "U": tf.float32, "Tout": tf.float32}
    lists = {
        "Tdevice_inputs": [tf.qint8, tf.qint8, tf.float32],
        "Thost_inputs": [tf.float32] * 4,
        "Tdevice_outputs": [tf.float32],
        "Thost_outputs": [],
    }
    attributes = {name: AttrValue(type=dtype.as_datatype_enum) for name, dtype in types.items()}
    for name, dtypes in lists.items():
        enums = [dtype.as_datatype_enum for dtype in dtypes]
        attributes[name] = AttrValue(list=AttrValue.ListValue(type=enums))
    fused = AttrValue.ListValue(s=[b"BiasAdd", b"Dequantize"])  # a bias is needed for it
    attributes |= {"fused_ops": AttrValue(list=fused), "transpose_b": AttrValue(b=transposed)}
    operation = tf.compat.v1.get_default_graph().create_op(
        "_QuantizedMatMul",
        [rows, weights, tf.zeros([num_outputs]), tf.constant(-1.0), tf.constant(1.0), *limits],
        [tf.float32],
        name="quantized_matmul",
        attrs=attributes,
    )
    (product,) = operation.outputs
    product.set_shape([rows.shape[0], num_outputs])
    return product


def check_int8_products() -> None:
    """Tries an int8 product.

    Raises:
        T2TError: this TensorFlow cannot compute one.
    """
    eye = Int8Matrix(tf.eye(2, dtype=tf.int8), tf.ones([1, 2]))
    try:
        # A function that is called, instead of a concrete one, is warned of when many models are loaded.
        product = tf.function(eye.multiply, autograph=False).get_concrete_function(tf.TensorSpec([1, 2]))
        product(tf.ones([1, 2]))
    except (tf.errors.OpError, KeyError, ValueError) as error:
        raise T2TError(
            "this TensorFlow has no int8 products, which need oneDNN, as builds for Linux on x86-64 have it: "
            "use bfloat16, or another machine"
        ) from error


class Int8Weights:
    """A model's matrices as int8 with a scale for each output channel; biases and norms stay as they are.

    Args:
        model: its matrices are copied, its other variables are shared.
        multiplied: whether they are for `products`, which needs smaller integers, or for `dequantized`.

    Raises:
        T2TError: they are for products, and the model is not in float32; or as `check_int8_products` and
            `check_held`.

    Attributes:
        variables: variables that a SavedModel must hold.
    """

    def __init__(self, model: Transformer, multiplied: bool = False) -> None:
        if multiplied:
            if model.compute_dtype != FLOAT32:
                raise T2TError(
                    f"int8 is for a model in float32, not {model.compute_dtype}: load it in float32"
                )
            check_int8_products()
        for one in getattr(model, "models", [model]):
            check_held(one.hparams, INT8)
        self._dtype = model.compute_dtype
        self._matrices = []
        self._others = [weight for weight in model.weights if not _is_matrix(weight)]
        self.variables = [weight.value for weight in self._others]
        for matrix in filter(_is_matrix, model.weights):
            # A row of an embedding is a token; a column of any other matrix is an output.
            axis = 0 if matrix.name == "embeddings" else 1
            integers, scales = quantize_int8(np.asarray(matrix), axis, MAX_FACTOR if multiplied else MAX_INT8)
            pair = tf.Variable(integers, trainable=False), tf.Variable(scales, trainable=False)
            self._matrices.append((matrix, *pair))
            self.variables.extend(pair)

    def products(self) -> AbstractContextManager[None]:
        """Returns a scope in which a model in float32 multiplies by its matrices in int8."""
        return replace_matrices(
            [
                (matrix, Int8Matrix(tf.convert_to_tensor(integers), tf.convert_to_tensor(scales)))
                for matrix, integers, scales in self._matrices
            ]
        )

    def dequantized(self) -> keras.StatelessScope:
        """Returns a scope in which the model computes, in its own precision, with the matrices' values."""
        scope = cast_weights(self._others, self._dtype)
        for matrix, integers, scales in self._matrices:
            value = tf.cast(tf.cast(integers, tf.float32) * scales, self._dtype)
            scope.add_update((matrix, value))
        return scope


def _is_matrix(weight: Any) -> bool:
    return weight.trainable and weight.name in READ_HERE


def quantize_int8(matrix: np.ndarray, axis: int, largest: int = MAX_INT8) -> tuple[np.ndarray, np.ndarray]:
    """Rounds a matrix to multiples of a scale per row or column.

    Args:
        matrix: float32, rank 2.
        axis: axis along which scales differ.
        largest: integer that stands for the largest value of a row or column.

    Returns:
        int8 of the matrix's shape, and float32 scales, of size 1 along the other axis. NaN makes its scale
        NaN.
    """
    steps = np.abs(matrix).max(axis=1 - axis, keepdims=True) / largest
    scales = np.where(steps == 0, 1, steps).astype(np.float32)
    return np.nan_to_num(np.rint(matrix / scales)).astype(np.int8), scales
