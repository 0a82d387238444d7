"""An output_dir for a model that was trained elsewhere."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from t2t_revival import registry
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.data.vocabulary import Vocabularies, open_vocabulary
from t2t_revival.data.vocabulary.marian import Around, pack
from t2t_revival.data.vocabulary.text_encoder import MARIAN
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.hparams.hparams import FILE_NAME as HPARAMS_FILE
from t2t_revival.model import Transformer
from t2t_revival.model_folder import RUN_FILE, ModelFolder, Run
from t2t_revival.problems import Problem
from t2t_revival.training.state import TrainingState
from t2t_revival.utils.files import check_file_name, write_whole, writing

SCOPE = "transformer/"  # before the names of all weights
HPARAMS_SET = "marian_base"  # of Marian's models
Shapes = Mapping[str, tuple[int, ...]]


class VocabularyFile(NamedTuple):
    """A vocabulary to be written into an output_dir, with one id for each row of the embeddings."""

    name: str
    content: bytes


@dataclass(frozen=True)
class ImportedModel:
    """A model that was trained elsewhere, in this project's terms.

    Attributes:
        problem: name.
        hparams_set: name.
        hparams: of the model.
        vocabularies: the one of both sides, or those of inputs and targets.
        decode_hparams: defaults of decoding.
        weights: returns the array of each weight by name, called with their shapes; raises T2TError.
        step: number of updates of the training.
        notes: one line for each setting that could not be imported.
    """

    problem: str
    hparams_set: str
    hparams: HParams
    vocabularies: Sequence[VocabularyFile]
    decode_hparams: dict[str, Any]
    weights: Callable[[Shapes], dict[str, np.ndarray]]
    step: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ImportResult:
    """An imported model.

    Attributes:
        folder: its files.
        step: number of updates of the training.
        parameters: number of parameters.
        vocab_sizes: numbers of ids by vocabulary file, padding included.
        notes: one line for each setting that could not be imported.
    """

    folder: ModelFolder
    step: int
    parameters: int
    vocab_sizes: dict[str, int]
    notes: list[str]


@contextmanager
def reading() -> Iterator[None]:
    """Turns an `OSError` of the block, which reads the files of a model, into a `T2TError`."""
    try:
        yield
    except OSError as error:
        raise T2TError(f"{error.filename}: {error.strerror or error}; get the model again") from error


def check_unused(output_dir: Path) -> None:
    """Raises T2TError if a folder holds a model, or part of one."""
    names = (RUN_FILE, HPARAMS_FILE, "checkpoint")
    existing = [name for name in names if (output_dir / name).exists()]
    existing += [checkpoint.path.name for checkpoint in checkpoints.list_checkpoints(output_dir)]
    if existing:
        raise T2TError(f"--output_dir={output_dir} is in use: it holds {existing[0]}; use another")


def check_config(
    config: Mapping[str, Any], where: Path, numbers: Iterable[str], supported: Mapping[str, Sequence[Any]]
) -> None:
    """Checks a model's settings: whole `numbers` that it must have, and `supported` values of others.

    Raises:
        T2TError: one is not supported; names it and its file, `where`.
    """
    for name in numbers:
        if not isinstance(config.get(name), int):
            raise T2TError(f"{where}: {name}={config.get(name)!r} is not a whole number")
    for name, values in supported.items():
        if name in config and config[name] not in values:
            known = " or ".join(map(repr, values))
            raise T2TError(f"{where}: {name}={config[name]!r} is not supported, but {known}")


def one_way_problem(name: str) -> Problem:
    """Returns a problem whose data is made in the model's direction.

    Raises:
        T2TError: it is not known, or a reverse.
    """
    problem = registry.problem(name)
    if problem.was_reversed:
        other = f"translate_{problem.source_lang}_{problem.target_lang}"
        raise T2TError(
            f"--problem={name}: Marian's vocabularies are for one direction: give --problem={other}"
        )
    return problem


def vocabulary_files(
    problem: str,
    tables: Sequence[Mapping[str, int]],
    models: Sequence[bytes],
    around: Mapping[str, Around] | None = None,
) -> list[VocabularyFile]:
    """Returns the files of Marian's vocabularies.

    Args:
        problem: name.
        tables: Marian's id of each piece, for both sides, or for sources and for targets.
        models: the SentencePiece models of sources and of targets.
        around: see `pack`.
    """
    if len(tables) == 1:
        return [VocabularyFile(f"vocab.{problem}{MARIAN}", pack(tables[0], models[0], models[-1], around))]
    return [
        VocabularyFile(f"vocab.{problem}.{side}{MARIAN}", pack(table, spm, spm, around))
        for side, table, spm in zip(("source", "target"), tables, models, strict=True)
    ]


def save(imported: ImportedModel, output_dir: Path) -> ImportResult:
    """Writes an output_dir as the trainer does.

    It has no moments, which are 0 when a training resumes, and the training data starts at its beginning. So
    that is at the same step, but not bit for bit.

    Raises:
        T2TError: as `weights` of the model, its decode_hparams are invalid, or the folder cannot be written.
            Nothing is written then.
    """
    hparams, files = imported.hparams, imported.vocabularies
    for file in files:
        check_file_name(Path(file.name))
    vocabularies = Vocabularies.of([open_vocabulary(*file) for file in files])
    DecodeHParams.parse("", imported.decode_hparams)
    folder = ModelFolder(output_dir)
    folder.prepare(imported.problem, imported.hparams_set, hparams)
    shapes = _shapes(hparams, vocabularies)
    arrays = imported.weights(shapes)
    assert {name: array.shape for name, array in arrays.items()} == shapes
    meta = {**asdict(TrainingState(step=imported.step)), "architecture": hparams.architecture()}
    meta[checkpoints.WITHOUT_MOMENTS] = True
    saved = {f"{checkpoints.MODEL}{SCOPE}{name}": array for name, array in arrays.items()}
    with _all_or_nothing(output_dir), writing(f"to output_dir {output_dir}"):
        output_dir.mkdir(parents=True, exist_ok=True)
        for name, content in files:
            write_whole(output_dir / name, content)
        checkpoints.save(output_dir / checkpoints.file_name(imported.step), saved, meta)
    (inputs, targets), separate = vocabularies, vocabularies.separate
    run = Run(
        problem=imported.problem,
        hparams_set=imported.hparams_set,
        data_dir="",
        vocabulary=inputs.path.name,
        fingerprint=inputs.fingerprint,
        decode_hparams=imported.decode_hparams,
        target_vocabulary=targets.path.name if separate else "",
        target_fingerprint=targets.fingerprint if separate else "",
    )
    folder.save(run, hparams, *(output_dir / file.name for file in files))
    sizes = {each.path.name: each.size for each in vocabularies.all}
    parameters = sum(math.prod(shape) for shape in shapes.values())
    return ImportResult(folder, imported.step, parameters, sizes, imported.notes)


@contextmanager
def _all_or_nothing(folder: Path) -> Iterator[None]:
    """Removes from a folder what a block that fails has written there, as on a full disk."""
    before = {*folder.iterdir()} if folder.exists() else None
    try:
        yield
    except BaseException:
        for path in {*folder.iterdir()} - (before or set()) if folder.exists() else ():
            path.unlink()
        if before is None and folder.exists():
            folder.rmdir()
        raise


def _shapes(hparams: HParams, vocabularies: Vocabularies) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of a model's weights; TensorFlow makes none of them for it."""
    is_tensorflow = keras.backend.backend() == "tensorflow"
    with importlib.import_module("tensorflow").Graph().as_default() if is_tensorflow else nullcontext():
        model = Transformer(hparams, vocabularies.inputs.size, target_vocab_size=vocabularies.target_size)
    return {weight.path.removeprefix(SCOPE): tuple(weight.shape) for weight in model.trainable_variables}
