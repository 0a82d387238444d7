"""From a T2T checkpoint to an output_dir."""

from __future__ import annotations

import dataclasses
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registry
from t2t_revival.data.subwords import SubwordVocabulary
from t2t_revival.data.vocabularies import SUBWORDS
from t2t_revival.errors import T2TError
from t2t_revival.files import check_file_name, writing
from t2t_revival.hparams import HParams
from t2t_revival.hparams.hparams import FILE_NAME as HPARAMS_FILE
from t2t_revival.t2t_import.folder import vocab_file
from t2t_revival.t2t_import.settings import NOT_T2TS, T2TSettings
from t2t_revival.t2t_import.variables import Checkpoint, places, vocab_size, weights
from t2t_revival.t2t_names import registered_name
from t2t_revival.training import checkpoints
from t2t_revival.training.compiling import build_model, compile_model
from t2t_revival.training.run import FILE_NAME, Run, check_place, save_run
from t2t_revival.training.state import TrainingState

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem

T2T_SETS = "transformer_"  # how the names of T2T's sets begin
RECIPES = ("transformer_base", "transformer_base_v2", "transformer_base_v1")
EXTRA_LENGTH = 100  # T2T's default, where the paper has 50
EMPTY_SUBTOKEN = b"''\n"
SCOPE = "transformer/"


@dataclass(frozen=True)
class Source:
    """What to import.

    Attributes:
        checkpoint: prefix, or folder of it.
        vocab_file: T2T's vocabulary; None: the only one beside the checkpoint, or in the training's data_dir.
        problem: name of the problem here; None: what T2T's name begins with.
        hparams_set: name of an hparams set here; None: T2T's own name where it is known, or the nearest of
            its sets.
        target_space: T2T's `target_space_id` of the problem; 0 for all of T2T's translation problems.
        ignored_hparams: settings of hparams.json that are not looked at.
    """

    checkpoint: Path
    vocab_file: Path | None = None
    problem: str | None = None
    hparams_set: str | None = None
    target_space: int = 0
    ignored_hparams: tuple[str, ...] = ()


@dataclass(frozen=True)
class Imported:
    """What was imported.

    Attributes:
        run: as run.json has it.
        hparams: as hparams.json has them.
        step: updates that the model was trained for.
        parameters: numbers in the model.
        vocab_size: ids, padding included.
        notes: settings of the training that could not be taken over, a line each.
    """

    run: Run
    hparams: HParams
    step: int
    parameters: int
    vocab_size: int
    notes: list[str] = field(default_factory=list)


def import_checkpoint(source: Source, output_dir: Path) -> Imported:
    """Makes `output_dir` what a training here would have left there.

    Weights, hparams and vocabulary come from T2T; Adam's moments are zero and the place in the data is the
    beginning, so that a training goes on at the step, but not as if it had never stopped.

    Args:
        source: what to import.
        output_dir: must not hold a run.

    Raises:
        T2TError: something of it is missing, damaged, or of another model than T2T's `transformer`;
            output_dir is in use. Nothing is written then.
    """
    _check_free(output_dir)
    checkpoint = Checkpoint(source.checkpoint)
    settings = T2TSettings.load(checkpoint.prefix.parent)
    size = vocab_size(checkpoint)
    hparams, notes = settings.hparams(source.ignored_hparams)
    names = places(checkpoint, hparams)
    vocabulary = SubwordVocabulary(source.vocab_file or vocab_file(checkpoint.prefix.parent, settings.flags))
    check_file_name(vocabulary.path)
    padding = _padding(vocabulary, size, settings.vocab_divisor)
    problem = _problem(source, settings, vocabulary.path)
    hparams_set = source.hparams_set or set_of(hparams, settings.flags.get("hparams_set", ""))
    registry.hparams(hparams_set)
    check_place(output_dir, problem.name, hparams_set)
    model = compile_model(build_model(hparams, size), hparams)  # as the trainer's, with Adam's moments
    variables = {v.path.removeprefix(SCOPE): v for v in model.trainable_variables}
    shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
    for name, array in weights(checkpoint, names, shapes, source.target_space).items():
        variables[name].assign(array)

    output_dir.mkdir(parents=True, exist_ok=True)
    copy = output_dir / f"{vocabulary.path.name.removesuffix(SUBWORDS)}{SUBWORDS}"
    with writing(copy) as file:
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
    return Imported(run, hparams, checkpoint.step, model.count_params(), size, notes)


def _save(model: Any, step: int, output_dir: Path) -> None:
    """Writes the checkpoint that a training goes on from."""
    arrays = {**checkpoints.model_arrays(model), **checkpoints.optimizer_arrays(model.optimizer)}
    meta = {**asdict(TrainingState(step=step)), "architecture": model.hparams.architecture()}
    checkpoints.save(output_dir / checkpoints.file_name(step), arrays, meta)


def _check_free(output_dir: Path) -> None:
    names = (FILE_NAME, HPARAMS_FILE, "checkpoint")
    there = [name for name in names if (output_dir / name).exists()]
    there += [checkpoint.path.name for checkpoint in checkpoints.list_checkpoints(output_dir)]
    if there:
        raise T2TError(f"--output_dir={output_dir} is in use: it holds {there[0]}; give another")


def _padding(vocabulary: SubwordVocabulary, size: int, divisor: int) -> bytes:
    """What fills a vocabulary up to the rows of the embeddings: subtokens that no text has.

    Raises:
        T2TError: the vocabulary is of another model.
    """
    missing = size - vocabulary.size
    if missing != -vocabulary.size % max(divisor, 1):
        raise T2TError(
            f"{vocabulary.path}: {vocabulary.size} subtokens, and the checkpoint's embeddings have {size} "
            "rows: the vocabulary of another model"
        )
    newline = b"" if not missing or vocabulary.content.endswith(b"\n") else b"\n"
    return newline + EMPTY_SUBTOKEN * missing


def _problem(source: Source, settings: T2TSettings, vocab_file: Path) -> Problem:
    """The problem here that T2T's is one of: `translate_ende` for `translate_ende_wmt32k`; so for `_rev`."""
    if source.problem:
        return registry.problem(registered_name(source.problem, registry.list_problems()))
    theirs = settings.flags.get("problem") or vocab_file.name.removeprefix("vocab.").partition(".")[0]
    forward = theirs.removesuffix(registry.REVERSED)
    known = [name for name in registry.list_problems() if f"{forward}_".startswith(f"{name}_")]
    try:
        return registry.problem(max(known, key=len, default=forward) + theirs[len(forward) :])
    except T2TError as error:
        raise T2TError(f"T2T's problem is {theirs}, which is none of those here: give --problem") from error


def set_of(hparams: HParams, theirs: str) -> str:
    """The hparams set that the training started from, or else T2T's that is nearest to what it became.

    Args:
        hparams: of the model.
        theirs: T2T's name of the set; empty where it is not known. It counts where its norms are the model's:
            what a name meant has changed between T2T's versions.
    """
    sets = {name: registry.hparams(name) for name in registry.list_hparams()}
    if theirs in sets and sets[theirs].pre_norm == hparams.pre_norm:
        return theirs
    fields = [field.name for field in dataclasses.fields(HParams) if field.name not in NOT_T2TS]

    def likeness(name: str) -> tuple[int, int]:
        return sum(getattr(sets[name], field) == getattr(hparams, field) for field in fields), -len(name)

    same = [name for name in sets if name.startswith(T2T_SETS) and _same_model(sets[name], hparams)]
    recipes = [name for name in RECIPES if sets[name].pre_norm == hparams.pre_norm]
    return max(same or recipes, key=likeness)


def _same_model(one: HParams, other: HParams) -> bool:
    return one.architecture() == other.architecture()
