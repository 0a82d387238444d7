"""Section 5.4: dropout."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

LEVELS = 1 << 16


class Dropout(keras.layers.Layer):
    """Dropout that spends 16 random bits on an element.

    A kept element is divided by the probability of being kept, so that the mean does not change. The
    probability is `rate` rounded to a multiple of 2^-16. Half the random numbers of
    `keras.layers.Dropout`, whose generation is a large part of a training step on a CPU.

    Args:
        rate: probability that an element is set to 0; at 0 the layer does nothing.
    """

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self.dropped_levels = min(round(rate * LEVELS), LEVELS - 1)

    def build(self, input_shape: Any = None) -> None:
        if self.dropped_levels:
            self.seed_generator = keras.random.SeedGenerator(name="seed")
        self.built = True

    def call(self, x: Any, training: bool = False) -> Any:
        if not training or not self.dropped_levels:
            return x
        size = ops.size(x)
        words = keras.random.randint(
            ((size + 1) // 2, 1), -(2**31), 2**31 - 1, dtype="int32", seed=self.seed_generator
        )
        levels = ops.reshape(ops.view(words, "int16"), (-1,))  # two to a word
        levels = ops.reshape(levels[:size], ops.shape(x))
        kept = ops.greater_equal(levels, ops.cast(self.dropped_levels - LEVELS // 2, "int16"))
        scale = ops.cast(LEVELS / (LEVELS - self.dropped_levels), x.dtype)
        return x * ops.where(kept, scale, ops.zeros_like(scale))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rate": self.rate}
