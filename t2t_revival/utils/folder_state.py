"""The state of files that another process writes, by which a change is noticed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple


class FileState(NamedTuple):
    """Path, size in bytes, and times of modification and of any change, in nanoseconds since 1970."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int


FolderState = tuple[FileState, ...]


def state_of(path: Path) -> FolderState:
    """Returns the state of a file, or of a folder and all in it; what is removed meanwhile is left out."""
    found = []
    for folder, folders, files in os.walk(path):
        folders.sort()
        found += [folder, *(os.path.join(folder, name) for name in sorted(files))]
    states = []
    for name in found or [str(path)]:
        try:
            status = os.stat(name)
        except OSError:
            continue
        states.append(FileState(name, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return tuple(states)


def changed_since(state: FolderState, seconds: float) -> bool:
    """Returns whether anything has changed in the last seconds; a copy that keeps older times has, too."""
    return max((one.ctime_ns for one in state), default=0) > (time.time() - seconds) * 1e9
