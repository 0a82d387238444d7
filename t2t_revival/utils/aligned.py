"""Arrays of NumPy's whose memory TensorFlow takes over instead of a copy, and JAX by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

ALIGNMENT = 64  # bytes; what both libraries ask for


def aligned_zeros(shape: Sequence[int], dtype: Any = "float32") -> np.ndarray:
    """Returns an array of zeros; the kernel finds memory for it where it is first written."""
    import numpy as np

    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def hand_over(array: np.ndarray, dtype: str) -> Any:
    """Returns what to assign to a variable of a type: with TensorFlow a tensor in the memory of `array`.

    The variable writes to that memory, so that nobody else may use the array any more.
    """
    import keras

    aligned = array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0
    if not aligned or not array.dtype == dtype == "float32" or keras.backend.backend() != "tensorflow":
        return array
    return _tensor_in(array)


def _tensor_in(array: np.ndarray) -> Any:
    import tensorflow as tf

    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def undrawn(shape: Sequence[int], dtype: str) -> Any:
    """Makes the initial values of a weight that a checkpoint's are about to replace: zeros."""
    return hand_over(aligned_zeros(shape), dtype)
