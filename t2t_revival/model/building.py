"""How layers are built: their weights before they are called, and their precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import keras


def build_children(layer: keras.layers.Layer) -> None:
    """Builds the layers inside `layer`, so that their weights exist and are named after it."""
    for child in layer._flatten_layers(include_self=False, recursive=False):
        if not child.built:
            child.build()


@contextmanager
def precision_policy(policy: str) -> Iterator[None]:
    """Layers made inside have this Keras dtype policy, as in "mixed_bfloat16"."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
