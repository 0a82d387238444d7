"""Records of the checkpoints that exports were made of, by which a continued training is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.checkpoints.directory import list_checkpoints
from t2t_revival.checkpoints.file import weights_of
from t2t_revival.errors import T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils import checked_json

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

FILE_NAME = "origin.json"


def save_origin(translator: Translator, version: Path) -> None:
    """Writes the checkpoints of an export into its folder, and the newest step of their training.

    Raises:
        OSError: it cannot be written.
    """
    if translator.checkpoint is None:  # weights that are no checkpoint's
        return
    paths = [one.path.absolute() for one in (translator.checkpoint, *translator.more_checkpoints)]
    output_dir = next((folder for folder in paths[0].parents if ModelFolder(folder).has_run), None)
    origin = {
        "checkpoints": {str(path): weights_of(path) for path in paths},
        "output_dir": str(output_dir or ""),
        "newest_step": _newest_step(output_dir) if output_dir else 0,
        checked_json.FORMAT: checked_json.NEWEST,
    }
    checked_json.save(version / FILE_NAME, origin)


def newer_note(version: Path) -> str:
    """Returns a line if the training of an export has gone on since; "" else, or where that is not known."""
    try:
        origin = checked_json.load(version / FILE_NAME, "")
        output_dir, step = Path(origin["output_dir"]), int(origin["newest_step"])
    except (OSError, T2TError):  # it was not made of a checkpoint
        return ""
    newest = _newest_step(output_dir) if origin["output_dir"] and output_dir.is_dir() else 0
    if newest <= step:
        return ""
    return (
        f"note: {version} was exported at step {step} of {output_dir}, which is at step {newest} now: export "
        "it again with t2t-exporter for the newer weights"
    )


def _newest_step(output_dir: Path) -> int:
    return max((checkpoint.step for checkpoint in list_checkpoints(output_dir)), default=0)
