"""How layers get their weights before they are called."""

from __future__ import annotations

import keras


def build_children(layer: keras.layers.Layer) -> None:
    """Builds the layers inside `layer`, so that their weights exist and are named after it."""
    for child in layer._flatten_layers(include_self=False, recursive=False):
        if not child.built:
            child.build()
