"""Import of a T2T checkpoint into a new output_dir."""

from __future__ import annotations

import dataclasses
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registry
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.text_encoder import SUBWORDS
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.hparams.hparams import FILE_NAME as HPARAMS_FILE
from t2t_revival.t2t_import.folder import NOT_T2TS, T2TSettings, vocab_file
from t2t_revival.t2t_import.variables import T2TCheckpoint, variable_names, vocab_size, weights
from t2t_revival.t2t_names import registered_name
from t2t_revival.training.checkpoints import directory as checkpoints
from t2t_revival.training.compile import build_model, compile_model
from t2t_revival.training.run import FILE_NAME, Run, check_place, save_run
from t2t_revival.training.state import TrainingState
from t2t_revival.utils.files import atomic_write, check_file_name

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem

T2T_SETS = "transformer_"  # prefix of the names of T2T's sets
RECIPES = ("transformer_base", "transformer_base_v2", "transformer_base_v1")
EXTRA_LENGTH = 100  # T2T's default; the paper's is 50
EMPTY_SUBTOKEN = b"''\n"
SCOPE = "transformer/"


@dataclass(frozen=True)
class ImportSource:
    """A T2T checkpoint, and the options of its import.

    Attributes:
        checkpoint: prefix or folder.
        vocab_file: T2T's vocabulary. `None` uses the only one beside the checkpoint or in the training's
            data_dir.
        problem: name of a problem. `None` uses the registered problem whose name begins T2T's.
        hparams_set: name of an hparams set. `None` uses T2T's own if registered, else the nearest T2T set.
        target_space: T2T's `target_space_id` of the problem; 0 for all of T2T's translation problems.
        ignored_hparams: names in hparams.json to ignore.
    """

    checkpoint: Path
    vocab_file: Path | None = None
    problem: str | None = None
    hparams_set: str | None = None
    target_space: int = 0
    ignored_hparams: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImportResult:
    """An imported model.

    Attributes:
        run: content of run.json.
        hparams: content of hparams.json.
        step: number of updates of the training.
        parameters: number of parameters.
        vocab_size: number of ids, padding included.
        notes: one line for each setting that could not be imported.
    """

    run: Run
    hparams: HParams
    step: int
    parameters: int
    vocab_size: int
    notes: list[str] = field(default_factory=list)


def import_checkpoint(source: ImportSource, output_dir: Path) -> ImportResult:
    """Writes an output_dir as this project's trainer does.

    Weights, hparams and vocabulary are T2T's. Adam's moments are zero and the training data starts at its
    beginning, so a training resumes at the same step, but not bit for bit.

    Raises:
        T2TError: a file is missing or corrupt, the model is not T2T's `transformer`, or output_dir holds a
            run. Nothing is written then.
    """
    _check_free(output_dir)
    checkpoint = T2TCheckpoint(source.checkpoint)
    settings = T2TSettings.load(checkpoint.prefix.parent)
    size = vocab_size(checkpoint)
    hparams, notes = settings.hparams(source.ignored_hparams)
    names = variable_names(checkpoint, hparams)
    vocabulary = SubwordVocabulary(source.vocab_file or vocab_file(checkpoint.prefix.parent, settings.flags))
    check_file_name(vocabulary.path)
    padding = _padding(vocabulary, size, settings.vocab_divisor)
    problem = _problem(source, settings, vocabulary.path)
    hparams_set = source.hparams_set or nearest_set(hparams, settings.flags.get("hparams_set", ""))
    registry.hparams(hparams_set)
    check_place(output_dir, problem.name, hparams_set)
    model = compile_model(build_model(hparams, size), hparams)  # as the trainer's, with Adam's moments
    variables = {v.path.removeprefix(SCOPE): v for v in model.trainable_variables}
    shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
    for name, array in weights(checkpoint, names, shapes, source.target_space).items():
        variables[name].assign(array)

    output_dir.mkdir(parents=True, exist_ok=True)
    copy = output_dir / f"{vocabulary.path.name.removesuffix(SUBWORDS)}{SUBWORDS}"
    with atomic_write(copy) as file:
        file.write(vocabulary.content + padding)
    _save(model, checkpoint.step, output_dir)
    run = Run(
        problem=problem.name,
        hparams_set=hparams_set,
        data_dir="",
        vocabulary=copy.name,
        fingerprint=SubwordVocabulary(copy).fingerprint,
        decode_hparams={**problem.decode_hparams(), "extra_length": EXTRA_LENGTH},
    )
    save_run(output_dir, run, hparams, copy)
    return ImportResult(run, hparams, checkpoint.step, model.count_params(), size, notes)


def _save(model: Any, step: int, output_dir: Path) -> None:
    """Saves a checkpoint from which a training resumes."""
    arrays = {**checkpoints.model_arrays(model), **checkpoints.optimizer_arrays(model.optimizer)}
    meta = {**asdict(TrainingState(step=step)), "architecture": model.hparams.architecture()}
    checkpoints.save(output_dir / checkpoints.file_name(step), arrays, meta)


def _check_free(output_dir: Path) -> None:
    names = (FILE_NAME, HPARAMS_FILE, "checkpoint")
    existing = [name for name in names if (output_dir / name).exists()]
    existing += [checkpoint.path.name for checkpoint in checkpoints.list_checkpoints(output_dir)]
    if existing:
        raise T2TError(f"--output_dir={output_dir} is in use: it holds {existing[0]}; use another")


def _padding(vocabulary: SubwordVocabulary, size: int, divisor: int) -> bytes:
    """Returns lines of empty subtokens that pad a vocabulary to the rows of the embeddings."""
    missing = size - vocabulary.size
    if missing != -vocabulary.size % max(divisor, 1):
        raise T2TError(
            f"{vocabulary.path}: {vocabulary.size} subtokens, but the checkpoint's embeddings have {size} "
            "rows: this is the vocabulary of another model"
        )
    newline = b"" if not missing or vocabulary.content.endswith(b"\n") else b"\n"
    return newline + EMPTY_SUBTOKEN * missing


def _problem(source: ImportSource, settings: T2TSettings, vocab_file: Path) -> Problem:
    """Returns the registered problem of T2T's: `translate_ende` for `translate_ende_wmt32k`, also `_rev`."""
    if source.problem:
        return registry.problem(registered_name(source.problem, registry.list_problems()))
    t2t_name = settings.flags.get("problem") or vocab_file.name.removeprefix("vocab.").partition(".")[0]
    forward = t2t_name.removesuffix(registry.REVERSED)
    known = [name for name in registry.list_problems() if f"{forward}_".startswith(f"{name}_")]
    try:
        return registry.problem(max(known, key=len, default=forward) + t2t_name[len(forward) :])
    except T2TError as error:
        raise T2TError(f"T2T's problem {t2t_name} is not registered here: give --problem") from error


def nearest_set(hparams: HParams, t2t_name: str) -> str:
    """Returns the training's hparams set or, if it is not registered, the nearest of T2T's sets.

    T2T's name of the set, which may be "", is ignored if its norms differ from the model's, since T2T's
    versions changed the meaning of names.
    """
    sets = {name: registry.hparams(name) for name in registry.list_hparams()}
    if t2t_name in sets and sets[t2t_name].pre_norm == hparams.pre_norm:
        return t2t_name
    fields = [field.name for field in dataclasses.fields(HParams) if field.name not in NOT_T2TS]

    def likeness(name: str) -> tuple[int, int]:
        return sum(getattr(sets[name], field) == getattr(hparams, field) for field in fields), -len(name)

    model = hparams.architecture()
    same = [name for name in sets if name.startswith(T2T_SETS) and sets[name].architecture() == model]
    recipes = [name for name in RECIPES if sets[name].pre_norm == hparams.pre_norm]
    return max(same or recipes, key=likeness)
