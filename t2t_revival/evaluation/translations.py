"""A text translated by each checkpoint of a training: `FOLDER/NAME-STEP`, as t2t-translate-all names it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from t2t_revival.errors import T2TError
from t2t_revival.files import writing

NAME = re.compile(r"[^.].*-(\d+)")
LAST_STEP = "last_evaluated_step"


@dataclass(frozen=True, order=True)
class TranslationFile:
    """A file of translations, and the step of the checkpoint that made them."""

    step: int
    path: Path


def list_translations(folder: Path) -> list[TranslationFile]:
    """The files of a folder whose names end with a step, lowest first; none where there is no folder.

    Those that are still being written are hidden, and not among them.
    """
    if not folder.is_dir():
        return []
    names = ((NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_file())
    return sorted(TranslationFile(int(match[1]), path) for match, path in names if match)


class LastStep:
    """The step up to which scores have gone to an event_dir (T2T's `last_evaluated_step.txt`).

    Args:
        event_dir: where the events are.
        tag_suffix: of the scores; those with another one are counted for themselves.
    """

    def __init__(self, event_dir: Path, tag_suffix: str = "") -> None:
        self._path = event_dir / f"{LAST_STEP}{tag_suffix.replace('/', '_')}.txt"

    def read(self) -> int | None:
        """The step; None: there is none yet.

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
        """Writes it down, whole or not at all."""
        with writing(self._path) as file:
            file.write(f"{step}\n".encode())
