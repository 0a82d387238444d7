"""Operations counted from graphs, held to formulas."""

import keras
import pytest
import tensorflow as tf

from t2t_revival.reproduction.operation_counts import count
from t2t_revival.reproduction.table1 import LAYER_TYPES, traced

K = 3  # kernel


def near(n: int) -> int:
    """Positions that a query's block meets: its own 128, and what r = 64 reaches beside them."""
    return n if n < 2 * 128 else 32 + 128 + 31


FORMULAS = {  # operations and sequential operations of n positions, d channels
    "self-attention": lambda n, d: (8 * n * d * d + 4 * n * n * d, 1),
    "recurrent (LSTM)": lambda n, d: (16 * n * d * d, n),
    "convolutional (k = 3)": lambda n, d: (2 * K * n * d * d, 1),
    "separable convolutional (k = 3)": lambda n, d: (2 * K * n * d + 2 * n * d * d, 1),
    "restricted self-attention (r = 64)": lambda n, d: (8 * n * d * d + 4 * n * near(n) * d, 1),
}


def counted(function, *shapes):
    return count(tf.function(function).get_concrete_function(*map(tf.TensorSpec, shapes)))


@pytest.mark.parametrize("layer_type", LAYER_TYPES, ids=lambda layer_type: layer_type.name)
@pytest.mark.parametrize(("length", "channels"), [(32, 128), (256, 64)])
def test_layers_cost_what_the_formula_says(layer_type, length, channels) -> None:
    graph = traced(layer_type.make(channels), length, channels)
    assert count(graph) == FORMULAS[layer_type.name](length, channels)


CALLED = tf.function(lambda a: tf.matmul(a, a))


def what_no_output_needs(a):
    tf.matmul(a, a)
    return a + 1.0


def what_serves_two_outputs(a):
    square = tf.matmul(a, a)
    return square, square + a


def gradients(a, b):
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        product = tf.matmul(a, b)
    return product, tape.gradient(product, [a, b])


@pytest.mark.parametrize(
    ("function", "shapes", "operations"),
    [
        (lambda a, b: tf.matmul(a, b), [(2, 3), (3, 5)], 2 * 2 * 3 * 5),
        (lambda a, b: tf.matmul(a, b, transpose_a=True), [(3, 2), (3, 5)], 2 * 2 * 3 * 5),
        (lambda a, b: tf.matmul(a, b, transpose_b=True), [(4, 2, 3), (4, 5, 3)], 2 * 4 * 2 * 3 * 5),
        (lambda a, b: tf.matmul(a, b, transpose_a=True), [(4, 3, 2), (4, 3, 5)], 2 * 4 * 2 * 3 * 5),
        (lambda a, b: tf.einsum("bhqd,bhmd->bhqm", a, b), [(1, 2, 3, 4), (1, 2, 5, 4)], 2 * 2 * 3 * 4 * 5),
        (lambda a: tf.einsum("ab->ba", a), [(2, 3)], 0),
        (lambda a, b: tf.matmul(a, b), [(2, 3), (3, 1)], 0),
        (lambda a, b: tf.nn.softmax(a + b), [(2, 3), (2, 3)], 0),
        (what_no_output_needs, [(3, 3)], 0),
        (what_serves_two_outputs, [(3, 3)], 2 * 27),
        (lambda a: CALLED(a) + CALLED(a), [(3, 3)], 2 * 2 * 27),
        (gradients, [(2, 3), (3, 5)], 3 * 2 * 2 * 3 * 5),
        (keras.layers.Dense(4), [(7, 6)], 2 * 7 * 6 * 4),
    ],
)
def test_products(function, shapes, operations) -> None:
    assert counted(function, *shapes).operations == operations


def test_loops_in_loops_multiply() -> None:
    def inner(a):
        return tf.while_loop(lambda a: True, lambda a: [tf.matmul(a, a)], [a], maximum_iterations=4)[0]

    def outer(a):
        return tf.while_loop(lambda a: True, lambda a: [inner(a)], [a], maximum_iterations=3)[0]

    assert counted(outer, (5, 5)) == (3 * 4 * 2 * 125, 12)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda a: tf.while_loop(lambda a: tf.reduce_sum(a) < 9, lambda a: [a + 1], [a])[0],
            "iterations is unknown",
        ),
        (
            lambda a: tf.while_loop(
                lambda a: True, lambda a: [a], [a], maximum_iterations=tf.cast(a[0, 0], "int32")
            )[0],
            "depends on the graph's inputs",
        ),
        (lambda a: tf.cond(a[0, 0] > 0, lambda: tf.matmul(a, a), lambda: a), "of a branch"),
        (lambda a: tf.matmul(tf.boolean_mask(a, a[:, 0] > 0), a), "the shape .* is not fully known"),
    ],
)
def test_what_cannot_be_counted_is_an_error(function, message) -> None:
    with pytest.raises(ValueError, match=message):
        counted(function, (2, 2))
