"""Shards that TensorFlow writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf


def write_shards(
    folder: Path, pairs: Sequence[tuple[list[int], list[int]]], count: int, name: str = "x-train"
) -> list[Path]:
    """Writes pairs of ids, dealt out to shards; returns these."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{name}-{index:05d}-of-{count:05d}" for index in range(count)]
    for index, path in enumerate(paths):
        write_records(path, [example(*pair) for pair in pairs[index::count]])
    return paths


def write_records(path: Path, records: Iterable[bytes]) -> Path:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return path


def example(inputs: list[int], targets: list[int], /, **others: Any) -> bytes:
    """Returns a serialised example of TensorFlow, with other features beside; empty lists are left out."""
    lists = {
        key: tf.train.Feature(int64_list=tf.train.Int64List(value=ids))
        for key, ids in (("inputs", inputs), ("targets", targets))
        if ids
    }
    return tf.train.Example(features=tf.train.Features(feature={**lists, **others})).SerializeToString()
