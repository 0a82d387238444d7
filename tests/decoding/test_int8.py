"""int8 products beside integer arithmetic in NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import T2TError
from t2t_revival.decoding import int8
from t2t_revival.decoding.int8 import MAX_FACTOR, Int8Matrix, check_int8_products, quantize_int8

CHANNELS, OUTPUTS = 24, 40


def in_numpy(rows, integers, scales):
    """Rows are rounded to multiples of a 127th of their largest value; sums are of integers."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    steps = np.rint(rows / np.where(largest == 0, 1, largest) * 127).astype(int)
    return (steps @ integers.astype(int)) * scales * largest / 127


def random_rows(number, random):
    rows = random.normal(size=(number, CHANNELS)) * np.exp(2 * random.normal(size=(number, 1)))
    return rows.astype(np.float32)


@pytest.mark.parametrize("transposed", [False, True])
def test_products_are_those_of_the_integers_for_any_number_of_rows(transposed):
    """oneDNN keeps the weights as it rearranged them for the first number of rows."""
    random = np.random.default_rng(1)
    matrix = random.normal(size=(CHANNELS, OUTPUTS)) * np.exp(random.normal(size=OUTPUTS))
    integers, scales = quantize_int8(matrix.astype(np.float32), 1, MAX_FACTOR)
    stored = tf.Variable(integers.T if transposed else integers), scales.T if transposed else scales
    multiply = tf.function(
        lambda rows: Int8Matrix(*stored, transposed).multiply(rows),
        input_signature=[tf.TensorSpec([None, CHANNELS])],
        autograph=False,
    )
    assert multiply.get_concrete_function().output_shapes.as_list() == [None, OUTPUTS]
    for number in (4, 128, 1, 7, 600, 4):
        rows = random_rows(number, random)
        expected = in_numpy(rows, integers, scales)
        atol = 1e-6 * np.abs(expected).max()
        np.testing.assert_allclose(multiply(tf.constant(rows)), expected, rtol=1e-5, atol=atol)


@pytest.mark.slow
@pytest.mark.parametrize("instructions", ["AVX2", "AVX512_CORE"])
def test_products_are_the_same_on_cpus_without_vnni(instructions):
    """There, sums of two products that do not fit into 16 bits would be cut off."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        "any_number_of_rows",
    ]
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": instructions}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_row_does_not_depend_on_the_others():
    random = np.random.default_rng(2)
    matrix = Int8Matrix(*quantize_int8(random.normal(size=(CHANNELS, OUTPUTS)).astype(np.float32), axis=1))
    multiply = tf.function(matrix.multiply, autograph=False)
    rows = random_rows(9, random)
    together = multiply(tf.constant(rows))
    for i in range(9):
        np.testing.assert_array_equal(multiply(tf.constant(rows[i : i + 1]))[0], together[i])


def test_a_row_of_zeros_stays_one():
    matrix = Int8Matrix(tf.ones([CHANNELS, OUTPUTS], tf.int8), tf.ones([1, OUTPUTS]))
    product = tf.function(matrix.multiply, autograph=False)(tf.zeros([3, CHANNELS]))
    np.testing.assert_array_equal(product, np.zeros([3, OUTPUTS]))


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_are_taken_with_their_scales(axis):
    matrix = np.random.default_rng(3).normal(size=(6, 4)).astype(np.float32)
    integers, scales = quantize_int8(matrix, axis)
    ids = tf.constant([[5, 0], [2, 2]])
    found = Int8Matrix(tf.constant(integers), tf.constant(scales)).take(ids)
    np.testing.assert_allclose(found, (integers * scales)[ids.numpy()], rtol=1e-6)


def test_tensorflow_without_these_products_is_refused(monkeypatch):
    check_int8_products()

    def fails(*_):
        raise tf.errors.NotFoundError(None, None, "no kernel")

    monkeypatch.setattr(int8, "quantized_matmul", fails)
    with pytest.raises(T2TError, match="no int8 products, which need oneDNN"):
        check_int8_products()


def test_tensorflow_does_not_warn_where_many_models_are_loaded(caplog):
    for _ in range(6):
        check_int8_products()
    assert not caplog.records
