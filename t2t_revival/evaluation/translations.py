"""Translations of a text by each checkpoint of a training: files `FOLDER/NAME-STEP` of t2t-translate-all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from t2t_revival.errors import T2TError
from t2t_revival.utils.files import atomic_write

NAME = re.compile(r"[^.].*-(\d+)")
LAST_STEP = "last_evaluated_step"


@dataclass(frozen=True, order=True)
class TranslationFile:
    """A file of translations, and the step of the checkpoint that made them."""

    step: int
    path: Path


def list_translations(folder: Path) -> list[TranslationFile]:
    """The files of a folder whose names end with a step, lowest first; none if there is no folder.

    Files that are still being written have hidden names, and are not listed.
    """
    if not folder.is_dir():
        return []
    names = ((NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_file())
    return sorted(TranslationFile(int(match[1]), path) for match, path in names if match)


class LastStep:
    """The step up to which scores were written to an event_dir (T2T's `last_evaluated_step.txt`).

    Args:
        event_dir: folder of the events.
        tag_suffix: of the scores; each suffix has a step of its own.
    """

    def __init__(self, event_dir: Path, tag_suffix: str = "") -> None:
        self._path = event_dir / f"{LAST_STEP}{tag_suffix.replace('/', '_')}.txt"

    def read(self) -> int | None:
        """Reads the step; `None` if there is none yet.

        Raises:
            T2TError: the file is damaged.
        """
        if not self._path.exists():
            return None
        try:
            return int(self._path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise T2TError(f"{self._path}: damaged, not a number; remove it, or give --min_steps") from error

    def write(self, step: int) -> None:
        """Writes the step atomically."""
        with atomic_write(self._path) as file:
            file.write(f"{step}\n".encode())
