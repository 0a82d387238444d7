"""int8 weights and products in float32: the multiples that they stand for, written without oneDNN's ops."""

import numpy as np
import tensorflow as tf

from t2t_revival.decoding.int8 import MAX_FACTOR, quantize_int8
from t2t_revival.model.products import Matrix


class RoundsRows(Matrix):
    """Products in float32 by rows that are rounded to multiples of a 127th of their largest value."""

    def __init__(self, values):
        self.values = values

    def multiply(self, rows):
        steps = tf.reduce_max(tf.abs(rows), axis=1, keepdims=True) / 127
        return tf.matmul(tf.round(rows / steps) * steps, self.values)

    def take(self, ids):
        return tf.gather(self.values, ids)

    def transpose(self):
        return RoundsRows(tf.transpose(self.values))


def assign_multiples(model, largest=MAX_FACTOR):
    """Gives a model the values of its int8 weights; returns pairs for `replace_matrices`."""
    matrices = [weight for weight in model.weights if weight.trainable and len(weight.shape) == 2]
    for weight in matrices:
        axis = 0 if "embeddings" in weight.path else 1
        integers, scales = quantize_int8(np.asarray(weight), axis, largest)
        weight.assign(integers * scales)
    return [(weight, RoundsRows(weight.value)) for weight in matrices]
