"""JSON files with a checksum of what they say: a digit that changed on the disk is found, not believed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_revival.errors import T2TError
from t2t_revival.files import writing

CHECKSUM = "checksum"


def save(path: Path, values: Mapping[str, Any], indent: int = 2) -> None:
    """Writes an object and its checksum, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    checked = {**values, CHECKSUM: _checksum(values)}
    with writing(path) as file:
        file.write((json.dumps(checked, indent=indent) + "\n").encode())


def load(path: Path, way_out: str) -> dict[str, Any]:
    """Reads what `save` wrote. A file without a checksum is taken as it is: somebody may have written it.

    Args:
        path: the file.
        way_out: ends the error, as in "generate it anew".

    Raises:
        T2TError: it is no JSON object, or not what was written; names the file.
        OSError: it cannot be read.
    """
    try:
        values = json.loads(path.read_bytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise T2TError(f"{path}: damaged, not UTF-8 text ({error}); {way_out}") from error
    except (ValueError, RecursionError) as error:
        raise T2TError(f"{path}: damaged, not JSON ({error}); {way_out}") from error
    if not isinstance(values, dict):
        raise T2TError(f"{path}: damaged, not a JSON object; {way_out}")
    if values.pop(CHECKSUM, checksum := _checksum(values)) != checksum:
        raise T2TError(
            f"{path}: damaged, its checksum does not fit; {way_out}. If you changed it yourself, remove the "
            f'line "{CHECKSUM}"'
        )
    return values


def _checksum(values: Mapping[str, Any]) -> str:
    """CRC-32 of the values, however they are laid out."""
    plain = json.loads(json.dumps(values))  # whose names are strings
    plain.pop(CHECKSUM, None)
    return f"{zlib.crc32(json.dumps(plain, sort_keys=True).encode()):08x}"
