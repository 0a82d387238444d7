"""Checkpoints that are converted for another engine once, and kept in a folder beside them.

ctranslate2-cache/
  model/                the converted checkpoint, the newest one only
    origin.json         origin of the folder and checksums of its files
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from t2t_revival.errors import T2TError
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import exclusive_lock, writing
from t2t_revival.utils.origins import checksum

FOLDER = "ctranslate2-cache"
MODEL = "model"
ORIGIN = "origin.json"
UNFINISHED = ".unfinished-"  # prefix of a folder that a killed process may leave
FORMAT = 1
Model = TypeVar("Model")


def open_converted(
    checkpoint: Path,
    origin: Mapping[str, Any],
    convert: Callable[[Path], None],
    load: Callable[[Path], Model],
    on_note: Callable[[str], None],
) -> Model:
    """Loads a converted checkpoint; converts it if that was not done, or of other weights, or is corrupt.

    Processes that open it at the same time wait for each other. Where nothing can be written beside the
    checkpoint, a temporary folder is used.

    Args:
        checkpoint: its file.
        origin: everything that the converted model depends on, as JSON values; `None` accepts any value.
        convert: writes the folder that it is called with, which does not exist yet.
        load: called with the folder; returns the model.
        on_note: called with a line for people on each conversion.

    Raises:
        T2TError: a temporary folder cannot be written either.
    """
    folder = checkpoint.parent / FOLDER
    try:
        folder.mkdir(exist_ok=True)
        with exclusive_lock(folder, None):
            kept = folder / MODEL
            if not _is_valid(kept, origin):
                on_note(f"converting {checkpoint.name} for CTranslate2, once; it is kept in {folder}")
                _replace(kept, origin, convert)
            return load(kept)
    except OSError as error:
        on_note(
            f"warning: cannot write {folder} ({error.strerror or error}): {checkpoint.name} is converted for "
            "this run only"
        )
    with (
        writing("a temporary folder", "free some space, or set TMPDIR"),
        tempfile.TemporaryDirectory() as scratch,
    ):
        convert(Path(scratch, MODEL))
        return load(Path(scratch, MODEL))


def _is_valid(folder: Path, origin: Mapping[str, Any]) -> bool:
    """Returns whether a folder is a complete conversion of this origin, with the files that were written."""
    try:
        stored = checked_json.load(folder / ORIGIN, "")
        expected = _description(folder, {name: value for name, value in origin.items() if value is not None})
        return all(stored.get(name) == value for name, value in expected.items())
    except (T2TError, OSError):
        return False


def _replace(kept: Path, origin: Mapping[str, Any], convert: Callable[[Path], None]) -> None:
    """Converts into a new folder, and puts it in place of the one before."""
    for left in kept.parent.glob(f"{UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=UNFINISHED) as scratch:
        made = Path(scratch, MODEL)
        convert(made)
        checked_json.save(made / ORIGIN, _description(made, origin))
        if kept.exists():
            shutil.rmtree(kept)
        made.rename(kept)


def _description(folder: Path, origin: Mapping[str, Any]) -> dict[str, Any]:
    files = {path.name: checksum(path) for path in sorted(folder.iterdir()) if path.name != ORIGIN}
    return {"format": FORMAT, **origin, "files": files}
