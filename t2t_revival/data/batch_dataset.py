"""The batches of a training as a `tf.data.Dataset`."""

from __future__ import annotations

import atexit
import ctypes
import threading
import time
from collections.abc import Iterator

import tensorflow as tf

from t2t_revival.data.batching import Element, TrainingBatches

PREFETCH = 64  # batches made ahead, which bridge the pause while the next chunk is read
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST_KEPT_BLOCK = 32 * 2**20  # bytes; the most that glibc itself goes up to, in a 64-bit process


def batch_dataset(batches: TrainingBatches) -> tf.data.Dataset:
    """Returns the endless batches of a training, as `TrainingBatches.elements` has them.

    Returns:
        Elements ({"inputs": int32 [n, s], "targets": int32 [n, t]}, labels int32 [n, t], weights
        float32 [n, t]); where batches are aligned, the inputs have "alignments" too, float32 [n, t, s]. The
        labels are the targets; their weights are 0 at padding.

    Raises:
        tf.errors.OpError: during iteration; the original exception is in `batches.error`.
    """
    ids = tf.TensorSpec([None, None], tf.int32)
    signature = [ids, ids, tf.TensorSpec([None], tf.float32)]
    if batches.aligned:
        signature.append(tf.TensorSpec([None, None, None], tf.float32))

    def begin() -> Iterator[Element]:
        keep_freed_memory()  # which TensorFlow has just turned off
        return _until_exit(batches.elements())

    data = tf.data.Dataset.from_generator(begin, output_signature=tuple(signature))
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    data = data.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    return data.map(_with_weights).with_options(options).prefetch(PREFETCH)


def _until_exit(elements: Iterator[Element]) -> Iterator[Element]:
    """Ends `elements` before Python exits: TensorFlow's prefetching thread would wait for it for ever."""
    stop, busy = threading.Event(), threading.Lock()

    def end() -> None:
        stop.set()
        with busy:
            pass
        time.sleep(0.1)  # for TensorFlow to request one more element and find the end

    atexit.register(end)
    try:
        while not stop.is_set():
            with busy:
                element = next(elements, None)
            if element is None:
                break
            yield element
    finally:
        if not stop.is_set():
            atexit.unregister(end)


def _with_weights(inputs: tf.Tensor, targets: tf.Tensor, weights: tf.Tensor, *alignments: tf.Tensor) -> tuple:
    weights = tf.cast(targets != 0, tf.float32) * weights[:, None]
    x = {"inputs": inputs, "targets": targets}
    return (x | {"alignments": alignments[0]} if alignments else x), targets, weights


def keep_freed_memory() -> None:
    """Lets freed blocks of up to 32 MB be used again without the kernel, as glibc does by itself.

    The first `tf.data.Dataset.from_generator` of a process turns that off under Python 3.11 and newer
    (`ApplyPython311MemoryPatch`): from then on each tensor of 128 kB or more is mapped and unmapped, and the
    kernel zeroes all its pages: twice the system time of a small training on CPUs. Does nothing with another
    C library.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT_BLOCK)
        mallopt(M_TRIM_THRESHOLD, 2 * LARGEST_KEPT_BLOCK)
