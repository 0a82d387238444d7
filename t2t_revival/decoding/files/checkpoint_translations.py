"""A text translated by each checkpoint of a training: `FOLDER/PROBLEM-STEP` (T2T's `t2t-translate-all`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.checkpoints.directory import Checkpoint
from t2t_revival.checkpoints.file import written_at
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.files.part_file import part_file
from t2t_revival.decoding.files.resumable import Report, translate_lines
from t2t_revival.decoding.lines.batching import OnProgress
from t2t_revival.decoding.lines.notes import OnNote, ignore_note
from t2t_revival.decoding.lines.pipeline import Lines
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import to_bytes
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import exclusive_lock, writing
from t2t_revival.utils.made_of import MadeOf, fingerprint

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

ANOTHER = "give another --translations_dir"


@dataclass
class CheckpointTranslations:
    """Translations of one text, one file for each checkpoint.

    Attributes:
        model: folder of the training.
        folder: of the translations; made if missing.
        lines: the text.
        name: its file, for warnings and errors.
        options: how to decode.
        num_parallel_batches: called before the first translation, once TensorFlow is needed; see
            `Translator`.
        on_progress: called after each batch.
        on_note: called with each line for people.

    Raises:
        T2TError: the options ask for more than one translation on a line.

    Example:
        model, folder = ModelFolder(Path("out")), Path("out/translations")
        translations = CheckpointTranslations(model, folder, lines, "dev.en", options)
        with translations.open():
            for checkpoint in list_checkpoints(model.path):
                translations.translate(checkpoint)
    """

    model: ModelFolder
    folder: Path
    lines: list[str]
    name: str
    options: DecodeHParams
    num_parallel_batches: Callable[[], int] = lambda: 1
    on_progress: OnProgress | None = None
    on_note: OnNote = ignore_note

    def __post_init__(self) -> None:
        self._translator: Translator | None = None
        capabilities.check(self.options.asked(), capabilities.TRANSLATIONS)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Locks the folder, and checks that its translations are of this text, model and options.

        Raises:
            T2TError: they are not, the folder cannot be written, or another process writes there.
        """
        with writing(f"to {self.folder}", ANOTHER):
            self.folder.mkdir(parents=True, exist_ok=True)
        busy = f"{self.folder}: another t2t-translate-all is writing there: wait until it ends, or {ANOTHER}"
        with exclusive_lock(self.folder, busy):
            self._check_origin()
            yield

    def path(self, checkpoint: Checkpoint) -> Path:
        """The file of a checkpoint's translation."""
        return self.folder / f"{self.model.run.problem}-{checkpoint.step}"

    def translate(self, checkpoint: Checkpoint) -> Path:
        """Translates the text with a checkpoint; the file gets the checkpoint's modification time.

        Only the first translation warns of lines that are too long: they are the same for all.

        Raises:
            T2TError: as `translate_lines`, or the file cannot be written.
            CorruptCheckpointError: the checkpoint is corrupt.
            CheckpointNotFoundError: the checkpoint was removed.
        """
        path, time = self.path(checkpoint), written_at(checkpoint.path)
        first = self._translator is None
        translator = self._load(checkpoint)
        with part_file(path, self.on_note, time) as output:
            translate_lines(
                translator,
                Lines(self.lines),
                output,
                Report(self.name, self.on_note, self.on_progress, of_inputs=first),
            )
        return path

    def _load(self, checkpoint: Checkpoint) -> Translator:
        """The translator, with the weights of a checkpoint."""
        from t2t_revival.decoding.translator import Translator

        if self._translator is None:
            self._translator = Translator.load(
                self.model.path,
                str(checkpoint.path),
                self.options,
                self.num_parallel_batches(),
                constant_weights=False,
                on_note=self.on_note,
            )
        else:
            self._translator.load_checkpoint(checkpoint)
        return self._translator

    def _check_origin(self) -> None:
        """Checks what the folder's translations were made from, or else writes it down there.

        The file gets the time at which the training began, from which TensorBoard counts the time of BLEU.
        """
        path = self.folder / f"{self.model.run.problem}-flags.json"
        model_dir, source = str(self.model.path.resolve()), f"sha256:{fingerprint(to_bytes(self.lines))}"
        origin = MadeOf({"model_dir": model_dir, "source": source, **self.options.of_texts})
        if not path.exists():
            checked_json.save(path, origin.values)
            time = (self.model.path / self.model.run.vocabulary).stat().st_mtime_ns
            os.utime(path, ns=(time, time))
            return
        stored = MadeOf(checked_json.load(path, f"remove it, or {ANOTHER}"))
        stored.check(origin, f"{self.folder} holds translations with", ANOTHER)
