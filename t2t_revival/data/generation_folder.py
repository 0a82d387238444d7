"""A data_dir while data is made in it: created, locked against others, with the plan of the generation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from t2t_revival.data.base_source import SPLITS
from t2t_revival.data.metadata import Metadata, metadata_path, unfinished_dir
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import exclusive_lock


@contextmanager
def created(data_dir: Path, work_dir: Path) -> Iterator[None]:
    """Creates `data_dir`; after a failure, removes it, its new parents and `work_dir` if empty."""
    created = [folder for folder in (data_dir, *data_dir.parents) if not folder.exists()]
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise T2TError(f"--data_dir={data_dir}: cannot be created ({error.strerror})") from error
    try:
        yield
    except BaseException:
        with suppress(OSError):  # missing or not empty
            work_dir.rmdir()
        with suppress(OSError):
            for folder in created:
                folder.rmdir()
        raise


@contextmanager
def generation_lock(data_dir: Path) -> Iterator[None]:
    """Locks a data_dir against other processes that generate data."""
    if not os.access(data_dir, os.W_OK | os.X_OK):
        raise T2TError(f"--data_dir={data_dir}: not writable; give another --data_dir")
    with exclusive_lock(data_dir, f"{data_dir}: another process is generating data there; wait for it"):
        yield


def read_plan(name: str, data_dir: Path) -> Metadata | None:
    """Reads the metadata of a problem in a data_dir, or else the plan of its unfinished generation."""
    for path in (metadata_path(data_dir, name), unfinished_dir(data_dir, name) / "plan.json"):
        if path.is_file():
            return Metadata.load(path)
    patterns = (f"{name}-{split}-?????-of-?????" for split in SPLITS)
    if stray := next(chain.from_iterable(map(data_dir.glob, patterns)), None):
        raise T2TError(
            f"{data_dir} holds {stray.name} without {name}.meta.json: another program has made it; "
            "give another --data_dir"
        )
    return None
