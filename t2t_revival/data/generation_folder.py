"""A data_dir while data is made in it: created, locked against others, with the plan of the generation."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from t2t_revival.data.base_source import SPLITS
from t2t_revival.data.metadata import Metadata, cleaned_path, metadata_path, references_path, unfinished_dir
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


def other_data(data_dir: Path, name: str) -> list[Metadata]:
    """Returns the metadata of the other problems in a data_dir; of a mixture, not of each corpus."""
    paths = sorted(data_dir.glob("*.meta.json"))
    found = [Metadata.load(path) for path in paths if path != metadata_path(data_dir, name)]
    return [other for other in found if "." not in other.name]


def remove_data(data_dir: Path, plan: Metadata, kept: Sequence[Path] = ()) -> None:
    """Removes a problem's data, of all corpora, finished or not; the metadata last, which names the rest.

    Vocabularies stay that are among `kept`, or that the data of another problem there has too.
    """
    for corpus in plan.corpora:
        if part := read_plan(f"{plan.name}.{corpus}", data_dir):
            remove_data(data_dir, part, kept)
    paths = [path for split in plan.pairs for path in data_dir.glob(f"{plan.name}-{split}-?????-of-?????")]
    paths += [references_path(data_dir, plan.name, split) for split in plan.pairs]
    own = metadata_path(data_dir, plan.name)
    others = [Metadata.load(path) for path in data_dir.glob("*.meta.json") if path != own]
    shared = {made.name for other in others for made in other.vocabularies}
    shared |= {path.name for path in kept if path.resolve().parent == data_dir.resolve()}
    paths += [data_dir / made.name for made in plan.vocabularies if made.name not in shared]
    for path in [*paths, cleaned_path(data_dir, plan.name)]:
        path.unlink(missing_ok=True)
    shutil.rmtree(unfinished_dir(data_dir, plan.name), ignore_errors=True)
    own.unlink(missing_ok=True)


def remove_temporary(data_dir: Path, name: str) -> None:
    """Removes temporary files that an interrupted `atomic_write` has left behind."""
    for pattern in (f".{name}-*.tmp", f".{name}.*.tmp", f".vocab.{name}.*.tmp"):
        for path in data_dir.glob(pattern):
            path.unlink(missing_ok=True)
