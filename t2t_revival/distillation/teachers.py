"""The teachers of a student: one trained model, or several that are decoded as an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from t2t_revival.decoding.options import FLOAT32, INT8, DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.training.checkpoints.directory import Checkpoint, OnDamaged
from t2t_revival.training.checkpoints.file import fingerprint
from t2t_revival.training.checkpoints.selection import select_checkpoint
from t2t_revival.training.run import Run

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.model import Transformer


class TrainedModel(NamedTuple):
    """A trained model: the output_dir of its training, and one of its checkpoints."""

    output_dir: Path
    checkpoint: Checkpoint

    @property
    def name(self) -> str:
        """The file and the weights of the checkpoint, for people and to compare."""
        average = "average " if self.checkpoint.averaged else ""
        return f"{average}{self.checkpoint.path.name} with weights {fingerprint(self.checkpoint.path)}"


def open_teachers(
    folders: Sequence[Path], checkpoint: str | None = None, on_damaged: OnDamaged | None = None
) -> tuple[list[TrainedModel], Run]:
    """Selects the checkpoints of teachers; also returns the run of the first.

    Args:
        folders: their output_dirs, at least one.
        checkpoint: see `select_checkpoint`; of a single teacher only.
        on_damaged: see `select_checkpoint`.

    Raises:
        T2TError: a folder holds no trained model, or one of another problem or vocabulary than the first.
    """
    runs = [Run.load(folder) for folder in folders]
    for folder, run in zip(folders, runs, strict=True):
        for what, own, first in (
            ("a model of " + run.problem, run.problem, runs[0].problem),
            ("another vocabulary", run.fingerprints, runs[0].fingerprints),
        ):
            if own != first:
                raise T2TError(
                    f"--teacher: {folder} has {what}, unlike {folders[0]}: teachers need the same problem "
                    "and vocabulary"
                )
    if checkpoint and len(folders) > 1:
        raise T2TError("--checkpoint is for a single --teacher: leave it out")
    checkpoints = (select_checkpoint(folder, checkpoint, on_damaged) for folder in folders)
    return [TrainedModel(*pair) for pair in zip(folders, checkpoints, strict=True)], runs[0]


def load_translator(
    teachers: Sequence[TrainedModel],
    options: DecodeHParams | str = "",
    num_parallel_batches: int = 1,
    **engine: Any,
) -> Translator:
    """Loads a translator of one model, or of the ensemble of several, which only TensorFlow decodes.

    See `Translator.load`, of whose arguments `engine` has some.

    Raises:
        T2TError: a model cannot be loaded, or they cannot be an ensemble.
    """
    from t2t_revival.decoding.ensemble import Ensemble
    from t2t_revival.decoding.translator import Translator

    single = len(teachers) == 1
    int8 = not single and engine.get("precision") == INT8
    if int8:  # of the ensemble, not of each model
        engine["precision"] = FLOAT32
    loaded = [
        Translator.load(
            teacher.output_dir,
            str(teacher.checkpoint.path),
            options,
            num_parallel_batches,
            constant_weights=single,
            **engine,
        )
        for teacher in teachers
    ]
    if single:
        return loaded[0]
    first = loaded[0]
    translator = Translator(
        cast("Transformer", Ensemble([each.model for each in loaded])),
        first.vocabulary,
        first.options,
        min(each.max_length for each in loaded),
        num_parallel_batches,
        problem=first.problem,
        translations=first.translations,
        int8=int8,
        target_vocabulary=first.vocabularies.targets,
    )
    translator.checkpoint = first.checkpoint
    return translator
