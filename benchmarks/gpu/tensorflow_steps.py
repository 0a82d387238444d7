"""Training steps and matrix products under TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf
from gpu.examples import Batch

IDS = tf.TensorSpec([None, None], tf.int32)
SPEC = ({"inputs": IDS, "targets": IDS}, IDS, tf.TensorSpec([None, None], tf.float32))


def accelerator() -> str | None:
    """Returns the first GPU's name, or `None`."""
    gpus = tf.config.list_physical_devices("GPU")
    return tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU") if gpus else None


def versions() -> str:
    """Returns the versions of Keras and the backend."""
    return f"Keras {keras.__version__}, TensorFlow {tf.__version__}"


def matmul(size: int) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """Returns a function that multiplies two random bfloat16 matrices, and one that waits for a result."""
    left, right = (tf.cast(tf.random.normal((size, size)), tf.bfloat16) for _ in range(2))
    product = tf.function(tf.matmul)
    return lambda: product(left, right), lambda last: last[0, 0].numpy()


def peak_memory() -> int | None:
    """Returns the peak of the GPU memory of this process in bytes, `None` without a GPU."""
    if not tf.config.list_physical_devices("GPU"):
        return None
    return tf.config.experimental.get_memory_info("GPU:0")["peak"]


class Steps:
    """Keras's training step, called without `fit`.

    Args:
        model: compiled.
        batches: repeated in this order.
        donate: ignored, since TensorFlow's variables are updated in place.
    """

    def __init__(self, model: Any, batches: list[Batch], donate: bool) -> None:
        def examples() -> Iterator[Any]:
            while True:
                for b in batches:
                    yield {"inputs": b.inputs, "targets": b.targets}, b.targets, b.weights

        self._examples = iter(tf.data.Dataset.from_generator(examples, output_signature=SPEC).prefetch(8))
        model.make_train_function()
        self._step = model.train_function
        self._logs: dict[str, Any] = {}

    def step(self) -> None:
        """Starts the step of one micro-batch."""
        self._logs = self._step(self._examples)

    def loss(self) -> float:
        """Waits for all steps and returns their mean loss."""
        return float(self._logs["loss"])
