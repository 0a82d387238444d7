"""The state of files that another process writes, by which a change is noticed."""

from __future__ import annotations

import os
import time
from pathlib import Path

FolderState = dict[str, tuple[int, int, int]]  # path -> size, times of writing and of any change in ns


def state_of(folder: Path) -> FolderState:
    """Returns the state of a folder and all in it; what is removed meanwhile is left out."""
    states: FolderState = {}
    for place, _, files in os.walk(folder):
        for name in (place, *(os.path.join(place, file) for file in files)):
            try:
                status = os.stat(name)
            except OSError:
                continue
            states[name] = status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return states


def changed_since(state: FolderState, seconds: float) -> bool:
    """Returns whether anything has changed in the last seconds; a copy that keeps older times has, too."""
    return max((change for _, _, change in state.values()), default=0) > (time.time() - seconds) * 1e9
