"""A checkpoint's file: an .npz, that is, a zip of NumPy arrays, which any NumPy reads.

    model/<variable path>        weights and random states
    optimizer/<variable path>    Adam's moments
    meta                         JSON: format, step, architecture, place in the data, its fingerprint, tokens
                                 seen, checksums

Each array has its CRC-32 in the zip; "checksums" in the meta data repeats them by name, so that an array that
is missing, renamed or exchanged is found as well. Nothing in such a file is run when it is read.
"""

from __future__ import annotations

import errno
import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival.errors import T2TError
from t2t_revival.files import writing

FORMAT = 1
MODEL, OPTIMIZER, META, CHECKSUMS = "model/", "optimizer/", "meta", "checksums"
SUFFIX = ".npy"
OF_DAMAGE = (None, errno.EINVAL, errno.EIO)  # a place outside of the file; a block that the disk cannot give


class DamagedError(T2TError):
    """A checkpoint is there, but not as it was written.

    Attributes:
        path: its file.
        fault: "FILE: damaged checkpoint (what is wrong)".
    """

    def __init__(self, path: Path, reason: object) -> None:
        self.path = path
        self.fault = f"{path}: damaged checkpoint ({reason})"
        super().__init__(f"{self.fault}; use another, such as the one before it")


class GoneError(T2TError):
    """A checkpoint is not there: it never was, or the training has removed it meanwhile."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"no checkpoint {path}")


def save(path: Path, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
    """Writes a checkpoint under a temporary name, forces it to the disk and gives it its name.

    Raises:
        T2TError: it cannot be written; what was there before stays as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing(path) as file, zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                _write(archive, name, array)
            text = json.dumps({"format": FORMAT, **meta, CHECKSUMS: _checksums(archive)})
            _write(archive, META, np.frombuffer(text.encode(), np.uint8))
    except OSError as error:
        raise T2TError(
            f"cannot write checkpoint {path}: {error.strerror or error}; the checkpoints before it are "
            "untouched: make room, or give a lower --keep_checkpoint_max, and start the same command again"
        ) from error


def load(path: Path, prefixes: tuple[str, ...] = (MODEL, OPTIMIZER)) -> tuple[dict[str, np.ndarray], dict]:
    """Reads a checkpoint; what it reads is verified.

    Args:
        path: its file.
        prefixes: which names to read.

    Returns:
        The arrays by name, and the meta data.

    Raises:
        T2TError: the file cannot be read, or is of a format that this version does not know.
        GoneError: there is no such file.
        DamagedError: it is truncated or damaged.
    """
    with _opened(path) as (archive, meta):
        names = [name for name in _checksums(archive) if name.startswith(prefixes)]
        return {name: _read(archive, name) for name in names}, meta


def verify(path: Path, prefixes: tuple[str, ...] = (MODEL, OPTIMIZER)) -> dict:
    """Reads a checkpoint, as `load`, and keeps nothing but its meta data."""
    with _opened(path) as (archive, meta):
        for name in _checksums(archive):
            if name.startswith(prefixes):
                archive.read(name + SUFFIX)
        return meta


def fingerprint(path: Path) -> str:
    """What tells a checkpoint's weights from others, wherever the file lies: 8 hexadecimal digits.

    Only names and checksums are read; raises as `load`.
    """
    with _opened(path) as (archive, _):
        weights = {name: crc for name, crc in _checksums(archive).items() if name.startswith(MODEL)}
        return f"{zlib.crc32(json.dumps(weights, sort_keys=True).encode()):08x}"


def trained_on(path: Path) -> str:
    """Fingerprint of the data that a checkpoint was trained on; empty: it does not say. Raises as `load`."""
    with _opened(path) as (_, meta):
        return str(meta.get("data") or "")


def written_at(path: Path) -> int:
    """Nanoseconds since 1970 at which a checkpoint was written; what is made of it gets the same.

    Raises:
        GoneError: it is not there.
    """
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        raise GoneError(path) from None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict]]:
    """The zip and the meta data of a checkpoint, whose list of arrays is as it was written."""
    try:
        with zipfile.ZipFile(path) as archive:
            meta = json.loads(_read(archive, META).tobytes())
            if (
                not isinstance(meta, dict)
                or meta.get("format") != FORMAT
                or type(meta.get("step")) is not int
            ):
                raise T2TError(f"{path}: not a checkpoint of format {FORMAT}")
            if meta.get(CHECKSUMS, _checksums(archive)) != _checksums(
                archive
            ):  # the first of format 1 have none
                raise ValueError("its arrays are not those that were written")
            yield archive, meta
    except FileNotFoundError:
        raise GoneError(path) from None
    except (T2TError, MemoryError):
        raise
    except Exception as error:  # a damaged zip can end in almost any of them
        if isinstance(error, OSError) and error.errno not in OF_DAMAGE:
            raise T2TError(f"{path}: cannot be read ({error.strerror})") from error
        raise DamagedError(path, error) from error


def _checksums(archive: zipfile.ZipFile) -> dict[str, int]:
    """CRC-32 of each array but the meta data."""
    members = {member.filename.removesuffix(SUFFIX): member.CRC for member in archive.infolist()}
    return {name: checksum for name, checksum in members.items() if name != META}


def _write(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    with archive.open(name + SUFFIX, "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _read(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array; its checksum is verified before any of it is looked at."""
    content = archive.read(name + SUFFIX)
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
