"""`tf.train.Example`, the protocol buffer in which T2T stores examples, written without TensorFlow.

    Example { Features features = 1; }    Features { map<string, Feature> feature = 1; }
    Feature { oneof { bytes_list = 1; float_list = 2; int64_list = 3; } }    each list { repeated value = 1; }

Values are packed. `example_parser` reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

FLOAT = struct.Struct("<f")


def encode_example(
    inputs: Sequence[int],
    targets: Sequence[int],
    weight: float | None = None,
    links: Sequence[int] | None = None,
) -> bytes:
    """Serialises a `tf.train.Example` with the int64 lists `inputs` and `targets`, which are not negative.

    With a weight, it also has the float list `weight` of one number; with links, those of `token_links`, the
    int64 list `alignment`.
    """
    features = _feature(b"inputs", inputs) + _feature(b"targets", targets)
    if links is not None:
        features += _feature(b"alignment", links)
    if weight is not None:
        floats = field(2, field(1, FLOAT.pack(weight)))
        features += field(1, field(1, b"weight") + field(2, floats))
    return field(1, features)


@lru_cache(maxsize=1 << 17)
def varint(value: int) -> bytes:
    """Encodes a protocol buffer's varint of a number that is not negative."""
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number: int, content: bytes) -> bytes:
    """Encodes a protocol buffer's length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def _feature(name: bytes, ids: Sequence[int]) -> bytes:
    """Encodes an entry of `Features.feature`: the name and a `Feature` with an `Int64List`."""
    int64_list = field(1, b"".join(map(varint, ids)))
    return field(1, field(1, name) + field(2, field(3, int64_list)))
