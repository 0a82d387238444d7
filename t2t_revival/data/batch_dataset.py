"""Batches made in Python as a `tf.data.Dataset`."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator

import tensorflow as tf

from t2t_revival.data.batching import Element
from t2t_revival.utils.host_memory import keep_freed_memory


def dataset_of(
    elements: Callable[[], Iterator[Element]], aligned: bool = False, cardinality: int = -1
) -> tf.data.Dataset:
    """Wraps elements of inputs int32 [n, s], targets int32 [n, t] and weights, float32 [n] or [1].

    Args:
        elements: makes an iterator over them.
        aligned: whether they have word alignments too, float32 [n, t, s].
        cardinality: their number; -1 if they are endless.
    """
    ids = tf.TensorSpec([None, None], tf.int32)
    signature = [ids, ids, tf.TensorSpec([None], tf.float32)]
    if aligned:
        signature.append(tf.TensorSpec([None, None, None], tf.float32))

    def begin() -> Iterator[Element]:
        keep_freed_memory()  # which TensorFlow has just turned off
        return _until_exit(elements())

    data = tf.data.Dataset.from_generator(begin, output_signature=tuple(signature))
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    data = data.apply(tf.data.experimental.assert_cardinality(cardinality))
    return data.map(_with_weights).with_options(options)


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
