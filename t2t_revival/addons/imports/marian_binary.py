"""Marian's binary files of tensors (.bin): headers, names, shapes, and data at multiples of `ALIGNMENT`."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from t2t_revival.addons.imports.kinds import MARIAN_START
from t2t_revival.errors import T2TError

ALIGNMENT = 256  # bytes, of the data of each tensor
FLOAT32, FLOAT16, INT8, INT8_MATRIX = 0x0404, 0x0402, 0x0101, 0x4101  # types of tensors
TYPES: dict[int, np.dtype[Any]] = {
    FLOAT32: np.dtype(np.float32),
    FLOAT16: np.dtype(np.float16),
    INT8: np.dtype(np.int8),
}


class Item(NamedTuple):
    """A tensor: its name, a type, the lengths of its axes, and its data."""

    name: str
    kind: int
    shape: tuple[int, ...]
    data: bytes


def write(items: Iterable[Item]) -> bytes:
    """Returns the content of a file."""
    padded = [item._replace(data=item.data + bytes(-len(item.data) % ALIGNMENT)) for item in items]
    header = MARIAN_START + struct.pack("<Q", len(padded))
    for name, kind, shape, data in padded:
        header += struct.pack("<4Q", len(name) + 1, kind, len(shape), len(data))
    header += b"".join(item.name.encode() + b"\0" for item in padded)
    header += b"".join(struct.pack(f"<{len(item.shape)}i", *item.shape) for item in padded)
    gap = -(len(header) + 8) % ALIGNMENT
    return header + struct.pack("<Q", gap) + bytes(gap) + b"".join(item.data for item in padded)


def read(content: bytes) -> dict[str, np.ndarray]:
    """Returns the tensors of a file by name.

    Raises:
        T2TError: a tensor is of another type than `TYPES` has, as those of int8 models are.
        ValueError: the content is corrupt; or struct.error or UnicodeDecodeError.
    """
    _, count = struct.unpack_from("<2Q", content)
    headers = list(struct.iter_unpack("<4Q", content[16 : 16 + 32 * count]))
    at, names, shapes, arrays = 16 + 32 * count, [], [], {}
    for length, *_ in headers:
        names.append(content[at : at + length - 1].decode())
        at += length
    for _, _, axes, _ in headers:
        shapes.append(struct.unpack_from(f"<{axes}i", content, at))
        at += 4 * axes
    at += 8 + struct.unpack_from("<Q", content, at)[0]
    for name, shape, (_, kind, _, length) in zip(names, shapes, headers, strict=True):
        if kind not in TYPES:
            raise T2TError(f"{name} is packed or int8: give the model that it was converted from")
        size = math.prod(shape) * TYPES[kind].itemsize
        if not 0 <= size <= length:
            raise ValueError(f"{name} of the shape {shape} has {length} bytes")
        arrays[name] = np.frombuffer(content[at : at + size], TYPES[kind]).reshape(shape)
        at += length
    return arrays
