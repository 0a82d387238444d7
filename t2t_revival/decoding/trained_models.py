"""Trained models by their folders: one, or several that are decoded as an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from t2t_revival.checkpoints.directory import Checkpoint, OnDamaged
from t2t_revival.checkpoints.selection import NAMES, select_checkpoint
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.engine import EngineConfig
from t2t_revival.decoding.lines.notes import OnNote, ignore_note
from t2t_revival.decoding.options import FLOAT32, PROBABILITIES, TENSORFLOW, DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils.made_of import MadeOf

if TYPE_CHECKING:
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.model import Transformer


class TrainedModel(NamedTuple):
    """A trained model: the folder of its training, and one of its checkpoints."""

    folder: ModelFolder
    checkpoint: Checkpoint

    @property
    def name(self) -> str:
        """The file and the weights of the checkpoint, for people and to compare."""
        average = "average " if self.checkpoint.averaged else ""
        return f"{average}{self.checkpoint.name}"

    def absolute(self) -> TrainedModel:
        """Returns the same with absolute paths."""
        file = self.checkpoint.path.absolute()
        return TrainedModel(ModelFolder(self.folder.path.absolute()), replace(self.checkpoint, path=file))

    @classmethod
    def select(
        cls, folder: ModelFolder, checkpoint: str | None = None, on_damaged: OnDamaged | None = None
    ) -> TrainedModel:
        """Returns the model of a folder with the checkpoint of `select_checkpoint`; raises as that."""
        return cls(folder, select_checkpoint(folder.path, checkpoint, on_damaged))


def open_models(
    folders: Sequence[Path], flag: str, checkpoint: str | None = None, on_damaged: OnDamaged | None = None
) -> list[TrainedModel]:
    """Selects the checkpoints of models that are decoded together.

    Args:
        folders: their output_dirs, at least one.
        flag: the flag that names them, for errors.
        checkpoint: see `select_checkpoint`; a file is for one model only.
        on_damaged: see `select_checkpoint`.

    Raises:
        T2TError: a folder holds no trained model, or one of another problem or vocabulary than the first.
    """
    opened = [ModelFolder(path) for path in folders]
    made = [MadeOf({"problem": one.run.problem, "vocabularies": one.run.fingerprints}) for one in opened]
    for folder, own in zip(opened, made, strict=True):
        remedy = f"models that are decoded together need the problem and the vocabulary of {folders[0]}"
        own.check(made[0], f"--{flag}: {folder.path} has", remedy)
    if checkpoint and len(folders) > 1 and checkpoint not in NAMES:
        raise T2TError(f"--checkpoint={checkpoint} is of one model: for several give {' or '.join(NAMES)}")
    return [TrainedModel.select(folder, checkpoint, on_damaged) for folder in opened]


def load_translator(
    models: Sequence[TrainedModel],
    decode_hparams: DecodeHParams | str = "",
    num_parallel_batches: int = 1,
    precision: str = FLOAT32,
    engine: str = TENSORFLOW,
    on_note: OnNote = ignore_note,
    mean: str = PROBABILITIES,
    constant_weights: bool = True,
    alignment_heads: AlignmentHeads | None = None,
) -> Translator:
    """Loads a translator of one model, or of the ensemble of several, which only TensorFlow decodes.

    See `Translator.load`; `mean` is of an ensemble.

    Raises:
        T2TError: a model cannot be loaded, or they cannot be an ensemble.
    """
    from t2t_revival.decoding.engines.ensemble import Ensemble
    from t2t_revival.decoding.translator import Translator

    single = len(models) == 1
    if not single:
        given = decode_hparams
        parsed = given if isinstance(given, DecodeHParams) else DecodeHParams.parse(given)
        capabilities.check(parsed.asked(), capabilities.ENSEMBLE)
    loaded = [
        Translator.load(
            one.folder,
            str(one.checkpoint.path),
            decode_hparams,
            num_parallel_batches,
            precision,
            constant_weights=constant_weights and single,
            engine=engine,
            on_note=on_note,
            alignment_heads=alignment_heads,
        )
        for one in models
    ]
    if single:
        return loaded[0]
    first = loaded[0]
    translator = Translator(
        cast("Transformer", Ensemble([each.model for each in loaded], mean)),
        first.vocabulary,
        first.options,
        min(each.max_length for each in loaded),
        EngineConfig(engine, precision, num_parallel_batches, constant_weights),
        problem=first.problem,
        target_vocabulary=first.vocabularies.targets,
    )
    if mean != PROBABILITIES:
        translator.engine += f", mean of {mean}"
    translator.checkpoint = first.checkpoint
    translator.more_checkpoints = tuple(one.checkpoint for one in models[1:])
    translator.reload = partial(
        load_translator,
        [one.absolute() for one in models],
        num_parallel_batches=num_parallel_batches,
        precision=precision,
        engine=engine,
        mean=mean,
        constant_weights=constant_weights,
    )
    return translator
