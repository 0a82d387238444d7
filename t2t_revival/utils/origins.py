"""`Origins`: what something was made of, recorded when it is made and compared when it is used."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

CHUNK = 1 << 20  # bytes that are read at once


class FileState(NamedTuple):
    """Size in bytes, modification time in nanoseconds since 1970, and CRC-32 of a file."""

    size: int
    mtime_ns: int
    checksum: int


@dataclass(frozen=True)
class Origins:
    """Files, or a version, that something was made of.

    Attributes:
        files: the state of each file, by its absolute path.
        version: of a set that a library holds; "" if there is none.
    """

    files: Mapping[str, FileState] = field(default_factory=dict)
    version: str = ""

    @classmethod
    def of(cls, files: Iterable[Path], version: str = "") -> Origins:
        """Records the present state of files, which are read once; those that do not exist are left out.

        Raises:
            OSError: one cannot be read.
        """
        states = {}
        for path in filter(Path.is_file, files):
            status = path.stat()
            states[str(path.absolute())] = FileState(status.st_size, status.st_mtime_ns, checksum(path))
        return cls(states, version)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Origins:
        """Converts from the JSON form of `dataclasses.asdict`."""
        return cls({path: FileState(*state) for path, state in fields["files"].items()}, fields["version"])

    @property
    def are_gone(self) -> bool:
        """True if there were files, of which none exists any more."""
        return bool(self.files) and not any(Path(path).exists() for path in self.files)

    def change(self, files: Iterable[Path] | None = None, version: str = "") -> str:
        """Describes the first change since the record; "" if there is none.

        A file is read only where its modification time alone differs: then the checksum decides.

        Args:
            files: what it would be made of now. `None` is those of the recorded files that still exist.
            version: of the library's set now. "" leaves it out of the comparison.
        """
        if version and self.version and version != self.version:
            return f"it was version {self.version} and is {version}"
        exist = [path for path in self.files if Path(path).exists()]
        now = exist if files is None else [str(path.absolute()) for path in files if path.is_file()]
        for path in now:
            if path not in self.files:
                return f"{path} is new"
            status, before = Path(path).stat(), self.files[path]
            if status.st_size != before.size:
                return f"{path} has {status.st_size:,} bytes instead of {before.size:,}"
            if status.st_mtime_ns != before.mtime_ns and checksum(Path(path)) != before.checksum:
                return f"{path} has other content of the same size"
        missing = [path for path in self.files if path not in now]
        return f"{missing[0]} is not there any more" if missing and files is not None else ""


def checksum(path: Path) -> int:
    """Returns the CRC-32 of a file."""
    found = 0
    with path.open("rb") as file:
        for chunk in iter(partial(file.read, CHUNK), b""):
            found = zlib.crc32(chunk, found)
    return found
