"""Tables of phrases, unpacked by TensorFlow ops; `tables.pack` packs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from t2t_revival.addons.lexical.phrases import OTHER_CLASSES
from t2t_revival.addons.lexical.tables import LexicalTables

HEADER = 3  # numbers before the tables


def unpack(packed: tf.Tensor) -> LexicalTables:
    """Returns the tables of a batch, padded to its most phrases, states and tokens.

    Args:
        packed: string [batch]; at least one.

    Raises:
        InvalidArgumentError: a text is not what `tables.pack` returns.
    """
    raw = tf.io.decode_base64(packed)
    lengths = tf.strings.length(raw) // tf.int32.size
    longest = tf.maximum(tf.reduce_max(lengths), HEADER)
    rows = tf.io.decode_raw(raw, tf.int32, fixed_length=longest * tf.int32.size)
    phrases, states, letters = (rows[:, place] for place in range(HEADER))
    shapes: dict[str, Sequence[tf.Tensor]] = {
        "alphabet": [letters],
        "transitions": [phrases, states, letters + OTHER_CLASSES],
        "ended": [phrases, states],
        "gains": [phrases, states],
        "next_tokens": [phrases, states],
        "costs": [phrases],
        "overlaps": [phrases, phrases],
        "required": [phrases],
        "forbidden": [phrases],
        "reserved": [tf.ones_like(phrases)],
    }
    sizes = {
        name: tf.reduce_prod(tf.cast(tf.stack(shape), tf.int64), axis=0) for name, shape in shapes.items()
    }
    whole = tf.add_n([*sizes.values()]) + HEADER == tf.cast(lengths, tf.int64)
    fits = whole & (phrases > 0) & (states > 0) & (letters > 0)
    with tf.control_dependencies(
        [tf.Assert(tf.reduce_all(fits), ["tables are not those of a client:", lengths])]
    ):
        rows = tf.identity(rows)
        shapes = {name: [tf.identity(size) for size in shape] for name, shape in shapes.items()}
    start, tables = tf.fill(tf.shape(phrases), HEADER), {}
    for name, shape in shapes.items():
        tables[name] = _table(rows, start, shape, {"alphabet": -1, "costs": 1}.get(name, 0))
        start += tf.cast(sizes[name], tf.int32)
    flags = {name: tables[name] > 0 for name in ("ended", "forbidden")}
    return LexicalTables(**{**tables, **flags})


def _table(rows: tf.Tensor, start: tf.Tensor, shape: Sequence[tf.Tensor], filler: int) -> Any:
    """Returns the table of a batch, [batch, values]: those of its sentences, padded to the largest sizes."""
    batch = tf.shape(rows)[0]
    place, exists = tf.zeros([batch, 1], tf.int32), tf.ones([batch, 1], tf.bool)
    for size in shape:  # of each sentence
        index, own = tf.range(tf.reduce_max(size)), size[:, None, None]
        place = tf.reshape(place[:, :, None] * own + index, [batch, -1])
        exists = tf.reshape(exists[:, :, None] & (index < own), [batch, -1])
    values = tf.gather(rows, tf.where(exists, start[:, None] + place, 0), batch_dims=1)
    return tf.where(exists, values, filler)
