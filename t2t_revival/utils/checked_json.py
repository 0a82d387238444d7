"""JSON files with a checksum of their values, by which corrupt files are found."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from t2t_revival.errors import T2TError
from t2t_revival.utils.files import write_whole
from t2t_revival.utils.made_of import fingerprint

CHECKSUM = "checksum"
FORMAT = "format_version"  # incremented where a file of the format before cannot be read any more
NEWEST = 1


def save(path: Path, content: Mapping[str, Any], indent: int = 2) -> None:
    """Writes an object and its checksum, completely or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    checked = {**content, CHECKSUM: _checksum(content)}
    write_whole(path, (json.dumps(checked, indent=indent) + "\n").encode())


def load(path: Path, hint: str) -> dict[str, Any]:
    """Reads a file of `save`. A file without a checksum is accepted, since it may be written by hand.

    Errors end with the hint, as in "generate it again".

    Raises:
        T2TError: the file is not a JSON object, or its checksum is wrong.
        OSError: the file cannot be read.
    """
    values = read(path, hint)
    if values.pop(CHECKSUM, checksum := _checksum(values)) != checksum:
        raise T2TError(
            f"{path}: corrupt, its content does not match its checksum; {hint}. If you changed it yourself, "
            f'remove the line "{CHECKSUM}"'
        )
    return values


def check_fields(path: Path, found: Mapping[str, Any], kind: type[Any], later: Set[str], hint: str) -> None:
    """Checks that an object has the fields that this version reads. Errors end with the hint.

    Args:
        path: the file, for errors.
        found: the object.
        kind: the dataclass of all fields.
        later: fields that have come into the format since, which may be missing.
        hint: for errors.

    Raises:
        T2TError: another version has written the file, or it is corrupt.
    """
    names = {field.name for field in dataclasses.fields(kind)}
    missing, unknown = names - later - found.keys(), found.keys() - names
    if found.get(FORMAT, NEWEST) != NEWEST or missing or unknown:
        differs = f"format {found.get(FORMAT, NEWEST)}, and this one reads {NEWEST}"
        if missing or unknown:
            differs = f"it {'lacks' if missing else 'has the field'} {min(missing or unknown)!r}"
        raise T2TError(f"{path}: written by another version of t2t_revival ({differs}), or corrupt; {hint}")


def read(path: Path, hint: str) -> dict[str, Any]:
    """Reads a JSON object, of whoever wrote it. Raises as `load`."""
    try:
        values = json.loads(path.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise T2TError(f"{path}: corrupt, not JSON ({error}); {hint}") from error
    if not isinstance(values, dict):
        raise T2TError(f"{path}: corrupt, not a JSON object; {hint}")
    return values


def _checksum(content: Mapping[str, Any]) -> str:
    """CRC-32 of the values, independent of their layout in the file."""
    plain = json.loads(json.dumps(content))  # whose names are strings
    plain.pop(CHECKSUM, None)
    return fingerprint(plain)
