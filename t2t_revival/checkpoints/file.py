"""Checkpoint files: .npz, that is, zips of NumPy arrays, which any NumPy reads.

    model/<variable path>        weights and random states
    optimizer/<variable path>    Adam's moments
    ema/<variable path>          moving averages of weights, which are used in their place where they are kept
    meta                         JSON: format, step, architecture, position in the data, its fingerprint,
                                 tokens seen, checksums

The zip has a CRC-32 of each array; "checksums" in the meta data repeats them by name, so that a missing,
renamed or exchanged array is detected as well. No code in such a file is run when it is read.
"""

from __future__ import annotations

import errno
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from t2t_revival.errors import T2TError
from t2t_revival.utils.aligned import aligned_zeros
from t2t_revival.utils.files import atomic_write, writing
from t2t_revival.utils.made_of import fingerprint

if TYPE_CHECKING:
    import numpy as np


FORMAT = 1
MODEL, OPTIMIZER, EMA, META, CHECKSUMS = "model/", "optimizer/", "ema/", "meta", "checksums"
SUFFIX = ".npy"
BLOCK = 16 * 2**20  # bytes that are read at once
CORRUPTION = (None, errno.EINVAL, errno.EIO)  # an offset outside of the file; a block that cannot be read
A, B = "lora_a.", "lora_b."  # how the names of the two matrices of an adapter begin


class CorruptCheckpointError(T2TError):
    """A checkpoint whose content is not as it was written.

    Attributes:
        path: its file.
        fault: "FILE: corrupt checkpoint (what is wrong)".
    """

    def __init__(self, path: Path, reason: object) -> None:
        self.path = path
        self.fault = f"{path}: corrupt checkpoint ({reason})"
        super().__init__(f"{self.fault}; use another one, such as the one before it")


class CheckpointNotFoundError(T2TError):
    """A checkpoint that does not exist, or that the training has removed meanwhile.

    Attributes:
        path: its file.
    """

    def __init__(self, path: Path, remedy: str = "") -> None:
        self.path = path
        super().__init__(f"no checkpoint {path}{remedy}")


def save(path: Path, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], way_out: str = "") -> None:
    """Writes a checkpoint atomically: under a temporary name, synced to the disk, then renamed.

    `way_out` is what else the command can do where the disk is full, after "make room".

    Raises:
        T2TError: it cannot be written; an earlier file of that name stays as it was.
    """
    import numpy as np

    remedy = f"earlier checkpoints are untouched: make room{way_out}, and start the same command again"
    with writing(f"checkpoint {path}", remedy):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                _write(archive, name, array)
            text = json.dumps({"format": FORMAT, **meta, CHECKSUMS: _checksums(archive)})
            _write(archive, META, np.frombuffer(text.encode(), np.uint8))


def load(
    path: Path, prefixes: tuple[str, ...] = (MODEL, OPTIMIZER, EMA)
) -> tuple[dict[str, np.ndarray], dict]:
    """Reads a checkpoint and verifies the arrays that it reads.

    Args:
        path: its file.
        prefixes: of the names of arrays to read.

    Returns:
        The arrays by name, and the meta data.

    Raises:
        T2TError: the file cannot be read, or is of a format that this version does not know.
        CheckpointNotFoundError: there is no such file.
        CorruptCheckpointError: it is truncated or otherwise corrupt.
    """
    with _opened(path) as (archive, meta):
        names = [name for name in _checksums(archive) if name.startswith(prefixes)]
        return {name: _read(archive, name) for name in names}, meta


def verify(path: Path, prefixes: tuple[str, ...] = (MODEL, OPTIMIZER, EMA)) -> dict:
    """Verifies a checkpoint as `load` does, and returns its meta data alone."""
    with _opened(path) as (archive, meta):
        for name in _checksums(archive):
            if name.startswith(prefixes):
                archive.read(name + SUFFIX)
        return meta


def weights_of(path: Path) -> str:
    """Fingerprint of a checkpoint's weights, whatever its path: 8 hexadecimal digits.

    Only names and checksums are read; raises as `load`.
    """
    with _opened(path) as (archive, _):
        weights = {name: crc for name, crc in _checksums(archive).items() if name.startswith((MODEL, EMA))}
        return fingerprint(weights)


def trained_on(path: Path) -> str:
    """Fingerprint of the data that a checkpoint was trained on; empty if it has none. Raises as `load`."""
    with _opened(path) as (_, meta):
        return str(meta.get("data") or "")


def written_at(path: Path) -> int:
    """Time at which a checkpoint was written, in nanoseconds since 1970.

    Raises:
        CheckpointNotFoundError: it does not exist.
    """
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        raise CheckpointNotFoundError(path) from None


class StoredWeights(Mapping[str, "np.ndarray"]):
    """The weights to use of a checkpoint, by name; each is read, and verified, where it is asked for.

    Moving averages of weights stand in the weights' place; low-rank adapters are added to their matrices.

    Attributes:
        meta: the meta data.

    Raises:
        T2TError: as `load`.
    """

    def __init__(self, path: Path) -> None:
        with _opened(path) as (archive, self.meta):
            stored = _checksums(archive)
        names = [name for kind in (MODEL, EMA) for name in stored if name.startswith(kind)]
        self._stored = {MODEL + name.partition("/")[2]: name for name in names}  # averages last
        with _reading(path):
            self._path, self._archive = path, zipfile.ZipFile(path)
        self._adapters: dict[str, np.ndarray] = {}
        self._adapters = {name: self[name] for name in [*self._stored] if is_adapter(name)}

    def __getitem__(self, name: str) -> np.ndarray:
        with _reading(self._path):
            array = _read(self._archive, self._stored[name])
        own = {each: matrix for each, matrix in self._adapters.items() if weight_path(each) == name}
        return merge_adapters({name: array, **own})[name] if own else array

    def outlines(self) -> dict[str, np.ndarray]:
        """Returns arrays of the weights' shapes and types, which hold no values and take no memory."""
        return {name: self._outline(name) for name in self}

    def _outline(self, name: str) -> np.ndarray:
        import numpy as np

        with _reading(self._path), self._archive.open(self._stored[name] + SUFFIX) as member:
            shape, _, dtype = _header(member)
        return np.broadcast_to(dtype.type(0), shape)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._stored if name not in self._adapters)

    def __len__(self) -> int:
        return len(self._stored) - len(self._adapters)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict]]:
    """Opens a checkpoint whose list of arrays is as it was written, as its zip and its meta data."""
    with _reading(path), zipfile.ZipFile(path) as archive:
        meta = json.loads(_read(archive, META).tobytes())
        if meta.get("format") != FORMAT or type(meta.get("step")) is not int:
            raise T2TError(f"{path}: not a checkpoint of format {FORMAT}")
        checksums = _checksums(archive)
        if meta.get(CHECKSUMS, checksums) != checksums:  # a file that NumPy alone wrote has none
            raise ValueError("its arrays are not those that were written")
        yield archive, meta


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turns the errors of the block, which reads a checkpoint, into those of `load`."""
    try:
        yield
    except FileNotFoundError:
        raise CheckpointNotFoundError(path) from None
    except (T2TError, MemoryError):
        raise
    except Exception as error:  # a corrupt zip can raise almost any
        if isinstance(error, OSError) and error.errno not in CORRUPTION:
            raise T2TError(f"{path}: cannot be read ({error.strerror})") from error
        raise CorruptCheckpointError(path, error) from error


def _checksums(archive: zipfile.ZipFile) -> dict[str, int]:
    """CRC-32 of each array but the meta data."""
    members = {member.filename.removesuffix(SUFFIX): member.CRC for member in archive.infolist()}
    return {name: checksum for name, checksum in members.items() if name != META}


def _write(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    import numpy as np

    with archive.open(name + SUFFIX, "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)


def _read(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """Reads an array, of which there is one copy in memory; zipfile verifies its checksum at the end."""
    import numpy as np

    with archive.open(name + SUFFIX) as member:
        shape, in_columns, dtype = _header(member)
        if dtype.hasobject:
            raise ValueError(f"{name} is a pickle, which can run code")
        array = aligned_zeros(shape[::-1] if in_columns else shape, dtype)
        unread = array.reshape(-1).view(np.uint8)
        while block := member.read(BLOCK):
            unread[: len(block)] = np.frombuffer(block, np.uint8)
            unread = unread[len(block) :]
    if len(unread):
        raise ValueError(f"{name} has fewer bytes than its shape")
    return array.T if in_columns else array


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Reads an array's shape, whether it is stored column by column, and its type."""
    from numpy.lib import format as npy

    version = npy.read_magic(member)
    return npy.read_array_header_1_0(member) if version == (1, 0) else npy.read_array_header_2_0(member)


def adapter_name(prefix: str, path: str) -> str:
    """The name of an adapter's matrix, `A` or `B`, for the weight of a path without the model's name."""
    return prefix + path.replace("/", ".")


def is_adapter(name: str) -> bool:
    """Returns whether a path, or a name in a checkpoint, is of an adapter's matrix."""
    return A in name or B in name


def weight_path(name: str) -> str:
    """Returns the path, or the name in a checkpoint, of the weight that an adapter's matrix changes.

    Other names are returned as they are.
    """
    prefix = A if A in name else B
    model, found, path = name.partition(prefix)
    return model + path.replace(".", "/") if found else name


def merge_adapters(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Adds each adapter's product to its matrix: W + A B; returns arrays without adapters."""
    merged = {name: array for name, array in arrays.items() if not is_adapter(name)}
    for name in (name for name in arrays if A in name):
        weight = weight_path(name)
        merged[weight] = merged[weight] + arrays[name] @ arrays[name.replace(A, B)]
    return merged
