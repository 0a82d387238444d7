"""Tensors of safetensors, PyTorch and NumPy files as arrays; no code of a file is run."""

from __future__ import annotations

import io
import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from t2t_revival.errors import T2TError
from t2t_revival.utils.extras import require

TYPES: dict[str, np.dtype[Any]] = {
    "FloatStorage": np.dtype(np.float32),
    "HalfStorage": np.dtype(np.float16),
    "DoubleStorage": np.dtype(np.float64),
    "LongStorage": np.dtype(np.int64),
    "IntStorage": np.dtype(np.int32),
}
BFLOAT16 = "BFloat16Storage"
POINTER = b"version https://git-lfs"
MAGIC = 0x1950A86A20F9469CFC6C  # of PyTorch before 1.6
Storage = Callable[[str, str, int], np.ndarray]  # kind, key, number of numbers


def read(path: Path) -> dict[str, np.ndarray]:
    """Returns the tensors of a .safetensors, .bin (PyTorch) or .npz file by name.

    Raises:
        T2TError: the file is missing or corrupt, or only Git LFS's pointer to it, or has something other than
            tensors.
    """
    readers: dict[str, Callable[[Path], dict[str, np.ndarray]]] = {
        ".safetensors": _safetensors,
        ".bin": _pytorch,
        ".npz": _numpy,
    }
    try:
        with path.open("rb") as file:
            if file.read(len(POINTER)) == POINTER:
                raise T2TError(f"{path}: a pointer of Git LFS, not the file: run git lfs pull in its folder")
        return readers[path.suffix](path)
    except FileNotFoundError as error:
        raise T2TError(f"{path}: no such file") from error
    except T2TError:
        raise
    except Exception as error:  # a damaged pickle may raise any
        reason = str(error) or type(error).__name__
        raise T2TError(f"{path}: corrupt, or not a file of tensors: {reason}; get it again") from error


def _numpy(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _safetensors(path: Path) -> dict[str, np.ndarray]:
    require("safetensors", str(path))
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def _tensor(flat: np.ndarray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> Any:
    """Makes a tensor for a PyTorch file from its storage; strides count elements."""
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if min((offset, *shape, *strides)) < 0 or max(last + 1, math.prod(shape)) > len(flat):
        raise ValueError(f"a tensor of shape {shape} is outside its storage")
    strides = tuple(stride * flat.itemsize for stride in strides)
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, strides, writeable=False)


class _Unpickler(pickle.Unpickler):
    """Reads the tensors of a PyTorch file, and nothing else."""

    def __init__(self, file: BinaryIO, storage: Storage) -> None:
        super().__init__(file)
        self._storage = storage

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and (name in TYPES or name == BFLOAT16):
            return name
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no tensor")

    def persistent_load(self, pid: Any) -> np.ndarray:
        _, kind, key, _, size, *view = pid
        if any(view):
            raise ValueError("it has a view of a storage")
        return self._storage(str(kind), str(key), size)


def _numbers(kind: str, content: bytes) -> np.ndarray:
    if kind == BFLOAT16:  # the upper half of float32
        return (np.frombuffer(content, "<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(content, TYPES[kind])


def _pytorch(path: Path) -> dict[str, np.ndarray]:
    found = _zipped(path) if zipfile.is_zipfile(path) else _before_zip(path)
    if not isinstance(found, dict) or not all(isinstance(value, np.ndarray) for value in found.values()):
        raise ValueError("it is no dictionary of tensors")
    return dict(found)


def _zipped(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(names) != 1:
            raise ValueError("it has no data.pkl")
        folder = names[0].removesuffix("data.pkl")

        def storage(kind: str, key: str, _: int) -> np.ndarray:
            return _numbers(kind, archive.read(f"{folder}data/{key}"))

        return _Unpickler(io.BytesIO(archive.read(names[0])), storage).load()


def _before_zip(path: Path) -> Any:
    """Reads a file of PyTorch before 1.6.

    It has five pickles, of a magic number, the format, the machine, the tensors and the keys of their
    storages; then each storage: its size, 8 bytes, and its numbers.
    """
    storages: dict[str, tuple[str, np.ndarray]] = {}

    def storage(kind: str, key: str, size: int) -> np.ndarray:
        array = np.zeros(size, TYPES.get(kind, np.float32))  # filled below
        return storages.setdefault(key, (kind, array))[1]

    with path.open("rb") as file:
        magic, _, _, found, keys = (_Unpickler(file, storage).load() for _ in range(5))
        if magic != MAGIC:
            raise ValueError("it is not PyTorch's")
        for key in keys:
            kind, array = storages[key]
            width = 2 if kind == BFLOAT16 else array.itemsize
            array[:] = _numbers(kind, file.read(8 + len(array) * width)[8:]).reshape(array.shape)
    return found
