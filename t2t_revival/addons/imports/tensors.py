"""Tensors of safetensors, PyTorch and NumPy files as arrays; no code of a file is run."""

from __future__ import annotations

import io
import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival.addons.imports import marian_binary
from t2t_revival.addons.imports.kinds import MARIAN_START
from t2t_revival.errors import T2TError, at
from t2t_revival.utils.extras import require

TYPES: dict[str, np.dtype[Any]] = {
    "FloatStorage": np.dtype(np.float32),
    "HalfStorage": np.dtype(np.float16),
    "DoubleStorage": np.dtype(np.float64),
    "LongStorage": np.dtype(np.int64),
    "IntStorage": np.dtype(np.int32),
}
BFLOAT16 = "BFloat16Storage"
REMEDIES = {  # what begins a file that cannot be read, what it is, and what helps
    b"version https://git-lfs": "a pointer of Git LFS, not the file: run git lfs pull in its folder",
    b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j": "PyTorch's format before 1.6: PyTorch writes the present one by "
    "torch.save(torch.load(FILE), FILE)",
}


def read(path: Path) -> dict[str, np.ndarray]:
    """Returns the tensors of a .safetensors, .bin (PyTorch 1.6 or later, Marian) or .npz file by name.

    Raises:
        T2TError: the file is corrupt, or has something other than tensors, or REMEDIES has it.
        OSError: it is missing.
    """
    readers: dict[str, Callable[[Path], dict[str, np.ndarray]]] = {
        ".safetensors": _safetensors,
        ".bin": _binary,
        ".npz": _numpy,
    }
    check_start(path)
    if path.suffix == ".safetensors":
        require("safetensors", str(path))
    try:
        return readers[path.suffix](path)
    except T2TError:
        raise
    except Exception as error:  # a damaged pickle may raise any
        reason = str(error) or type(error).__name__
        raise T2TError(f"{path}: corrupt, or not a file of tensors: {reason}; get it again") from error


def check_start(path: Path) -> None:
    """Checks the beginning of a file.

    Raises:
        T2TError: it is one of REMEDIES.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(64)
    if remedy := next((REMEDIES[known] for known in REMEDIES if start.startswith(known)), None):
        raise T2TError(f"{path}: {remedy}")


def _binary(path: Path) -> dict[str, np.ndarray]:
    content = path.read_bytes()
    if not content.startswith(MARIAN_START):
        return _pytorch(path)
    with at(str(path)):
        return marian_binary.read(content)


def _numpy(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _safetensors(path: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(path)


def _tensor(flat: np.ndarray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> Any:
    """Makes a tensor for a PyTorch file from its storage; strides count elements."""
    if math.prod(shape) > len(flat):  # a stride of 0 could ask for any amount of memory
        raise ValueError(f"a tensor of shape {shape} is outside its storage")
    size = flat.itemsize
    return np.ndarray(shape, flat.dtype, flat, offset * size, [stride * size for stride in strides]).copy()


class _Unpickler(pickle.Unpickler):
    """Reads the tensors of a PyTorch file, and nothing else."""

    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(io.BytesIO(archive.read(f"{folder}/data.pkl")))
        self._archive, self._folder = archive, folder

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and (name in TYPES or name == BFLOAT16):
            return name
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no tensor")

    def persistent_load(self, pid: Any) -> np.ndarray:
        _, kind, key, *_ = pid
        content = self._archive.read(f"{self._folder}/data/{key}")
        if kind == BFLOAT16:  # the upper half of float32
            return (np.frombuffer(content, "<u2").astype(np.uint32) << 16).view(np.float32)
        return np.frombuffer(content, TYPES[str(kind)])


def _pytorch(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        (pickled,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        found = _Unpickler(archive, pickled.removesuffix("/data.pkl")).load()
    if not isinstance(found, dict) or not all(isinstance(value, np.ndarray) for value in found.values()):
        raise ValueError("it is no dictionary of tensors")
    return dict(found)
