"""Section 5.4: dropout."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import keras
from keras import ops

from t2t_revival.model.layer import Layer

LEVELS = 256  # of one random byte
HALF_WORD = 2**31
_REPLICA: ContextVar[Any] = ContextVar("replica", default=None)


@contextmanager
def replica(number: Any) -> Iterator[None]:
    """Context in which dropout draws the bits of replica `number`, an int or int scalar.

    Replicas have one random state, from which they would draw the same bits for their parts of a batch.
    Replica 0 draws the same bits as outside of the context.
    """
    token = _REPLICA.set(number)
    try:
        yield
    finally:
        _REPLICA.reset(token)


class SeedGenerator(keras.random.SeedGenerator):
    """`keras.random.SeedGenerator` whose seeds differ between replicas; see `replica`."""

    def next(self, ordered: bool = True) -> Any:
        """Returns the next seed, [2]."""
        seed, number = super().next(ordered), _REPLICA.get()
        if number is None:
            return seed
        return seed + ops.stack([ops.cast(number, seed.dtype), ops.zeros((), seed.dtype)])


def random_bytes(shape: Any, seed: keras.random.SeedGenerator) -> Any:
    """Returns uniformly distributed int8 values of a shape."""
    *rows, channels = shape
    groups = (channels + 3) // 4
    words = keras.random.randint((*rows, groups, 1), -HALF_WORD, HALF_WORD - 1, dtype="int32", seed=seed)
    levels = ops.view(words, "int8")  # [..., groups, 4]: four to a word
    return ops.reshape(levels, (*rows, 4 * groups))[..., :channels]


@keras.saving.register_keras_serializable("t2t_revival")
class Dropout(Layer):
    """Dropout that spends 8 random bits on an element.

    An element is dropped if its random byte is below a threshold. The threshold is `rate` * 256, rounded
    up or down at random at each call, so that the probability is exactly `rate`. A kept element is divided
    by 1 - `rate`, so that the mean does not change. A quarter of the random numbers of
    `keras.layers.Dropout`, whose generation is a large part of a training step on a CPU.

    Args:
        rate: probability that an element is set to 0; at 0 the layer does nothing.

    Example:
        output = Dropout(0.1)(x, training=True)

    Reference: Vaswani et al., 2017, section 5.4.
    """

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def build(self, input_shape: Any = None) -> None:
        if self.rate:
            self.seed_generator = SeedGenerator(name="seed")

    def call(self, x: Any, training: bool = False) -> Any:
        if not training or not self.rate:
            return x
        levels = random_bytes(ops.shape(x), self.seed_generator)
        rounding = keras.random.uniform((), seed=self.seed_generator)
        threshold = ops.floor(self.rate * LEVELS + rounding) - LEVELS // 2
        # At a rate near 1 the threshold can exceed the largest byte, which is kept nevertheless.
        kept = ops.greater_equal(levels, ops.cast(ops.minimum(threshold, LEVELS // 2 - 1), "int8"))
        scale = ops.cast(1 / (1 - self.rate), x.dtype)
        return x * ops.where(kept, scale, ops.zeros_like(scale))
