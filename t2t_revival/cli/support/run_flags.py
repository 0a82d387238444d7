"""The flags about a training run, which several commands have, and what follows from them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival import registry, t2t_names
from t2t_revival.cli.lines import say
from t2t_revival.errors import T2TError
from t2t_revival.files import is_file_name
from t2t_revival.hints import datagen_command

if TYPE_CHECKING:
    from t2t_revival.decoding.options import DecodeHParams
    from t2t_revival.problems.problem import Problem
    from t2t_revival.training.checkpoint_file import DamagedError
    from t2t_revival.training.run import Run

TRAIN_DIR = "~/t2t_train"
IMPORTED_DATA = "data"  # in the output_dir of an imported model
T2T_SETS = "transformer_"  # how the names of its sets begin


def define(values: flags.FlagValues) -> None:
    """Adds the flags to a command's, which has `--problem` already."""
    flags.DEFINE_string(
        "hparams_set", None, "Named set of hyperparameters, such as base or big.", flag_values=values
    )
    flags.DEFINE_string(
        "output_dir",
        None,
        f"Where the run's checkpoints lie; by default {TRAIN_DIR}/PROBLEM/HPARAMS.",
        flag_values=values,
    )


def define_checkpoint_path(values: flags.FlagValues) -> None:
    """Adds `--checkpoint_path` to the flags of a command that uses a trained model."""
    flags.DEFINE_string(
        "checkpoint_path",
        None,
        "A checkpoint's file or a folder of them; by default output_dir's newest, its average where made.",
        flag_values=values,
    )


def warn_of_damage(error: DamagedError) -> None:
    """Says that a damaged checkpoint is left out."""
    from t2t_revival.training.checkpoints import left_out

    say(f"warning: {left_out(error)}")


def say_left_out(error: DamagedError) -> None:
    """Says that a damaged checkpoint is left out, where each is used for itself."""
    say(f"warning: {error.fault}, left out")


def decode_options(text: str | None, run: Run) -> DecodeHParams:
    """`--decode_hparams` on top of the run's own; warns of a batch_size that was meant in sentences."""
    from t2t_revival.decoding.options import DecodeHParams

    options = DecodeHParams.parse(text or "", run.decode_hparams)
    if warning := options.batch_size_warning:
        say(f"warning: {warning}")
    return options


def model_files(values: flags.FlagValues, folder: Path, run: Run) -> dict[str, Path]:
    """The files that are read of a trained model, by what an error calls them."""
    from t2t_revival.hparams.hparams import FILE_NAME as HPARAMS
    from t2t_revival.training.checkpoints import list_averaged, list_checkpoints
    from t2t_revival.training.run import FILE_NAME as RUN

    given = Path(values.checkpoint_path or folder).expanduser()
    checkpoints = [*list_checkpoints(folder), *list_averaged(folder), *list_checkpoints(given)]
    paths = [
        given,
        given.with_name(f"{given.name}.npz"),
        *(folder / name for name in (HPARAMS, RUN, run.vocabulary)),
    ]
    return {f"the model's {path}": path for path in [*paths, *(found.path for found in checkpoints)]}


def hparams_set(values: flags.FlagValues) -> str:
    """`--hparams_set`.

    Raises:
        T2TError: it is not given.
    """
    if not values.hparams_set:
        raise T2TError("--hparams_set is missing, such as base or big; --registry_help lists all")
    return values.hparams_set


def output_dir(values: flags.FlagValues) -> Path:
    """`--output_dir` with ~ resolved, or the default, which problem and hparams set name.

    Raises:
        T2TError: none of these is given, or one is no name.
    """
    if values.output_dir:
        return _ours(Path(values.output_dir).expanduser(), values)
    if not values.problem:
        raise T2TError("--problem is missing, or --output_dir")
    names = (values.problem, hparams_set(values))
    if strange := [name for name in names if not is_file_name(name)]:
        raise T2TError(f"{strange[0]!r} is no name of a problem or hparams set; --registry_help lists all")
    folder = Path(TRAIN_DIR).expanduser().joinpath(*names)
    here = t2t_names.problem_here(values.problem)
    if here and not folder.exists():
        folder = folder.parents[1] / here / folder.name
    return _ours(folder, values)


def _ours(path: Path, values: flags.FlagValues) -> Path:
    """The path, which must not be tensor2tensor's.

    Raises:
        T2TError: it is; gives the command that imports what is there.
    """
    from t2t_revival.t2t_import.folder import has_t2t_hparams, import_command, t2t_checkpoint

    checkpoint = t2t_checkpoint(path)
    if checkpoint is None and has_t2t_hparams(path):
        raise T2TError(
            f"{path}: its hparams.json is tensor2tensor's, and there is no checkpoint model.ckpt-*.index to "
            "import: give another folder"
        )
    if checkpoint is None:
        return path
    data_dir = values.data_dir if "data_dir" in values else None
    output_dir, command = import_command(checkpoint, values.problem, data_dir)
    raise T2TError(
        f"{path} holds a checkpoint of tensor2tensor. Import it: {shlex.join(command)}; then give "
        f"--output_dir={shlex.quote(str(output_dir))}"
    )


def open_run(values: flags.FlagValues) -> tuple[Path, Run]:
    """The output_dir and what was trained there; flags that name a problem or an hparams set must agree.

    tensor2tensor's name of the problem agrees, and so does its hparams set of the same model.

    Raises:
        T2TError: the flags name no output_dir, an unknown problem or hparams set, or not what was trained;
            there is no trained model, or its run.json is damaged.
    """
    folder = output_dir(values)
    if "checkpoint_path" in values and values.checkpoint_path:
        _ours(Path(values.checkpoint_path).expanduser(), values)
    return folder, run_in(values, folder)


def run_in(values: flags.FlagValues, folder: Path) -> Run:
    """What was trained in a folder; see `open_run`."""
    from t2t_revival.training.run import FILE_NAME, Run

    if "t2t_usr_dir" in values and values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    if not (folder / FILE_NAME).exists() and "t2t_usr_dir" in values:  # else it may be a user's problem
        _check_names(values, folder)
    run = Run.load(_ours(folder, values))
    if values.problem not in (None, run.problem) and not _is_t2ts(values.problem, run.problem):
        raise T2TError(f"--problem={values.problem}: {folder} holds a model of {run.problem}")
    if values.hparams_set not in (None, run.hparams_set) and not _is_set_of(values.hparams_set, folder):
        raise T2TError(f"--hparams_set={values.hparams_set}: {folder} holds a model of {run.hparams_set}")
    return run


def named(values: flags.FlagValues) -> dict[str, str]:
    """The flags that name the run in the command to type next: no more than this command was given."""
    names = ("output_dir",) if values.output_dir else ("problem", "hparams_set")
    return {name: values[name].value for name in (*names, "t2t_usr_dir")}


def split_dir(values: flags.FlagValues, output_dir: Path, run: Run, problem: Problem) -> Path:
    """The folder of a split's shards: `--data_dir`, or where the model was trained from.

    An imported model was trained from nowhere here; its data is in output_dir/data.

    Raises:
        T2TError: there is no data of the problem; says the command that makes it for the model's vocabulary.
    """
    folder = Path(values.data_dir or run.data_dir or output_dir / IMPORTED_DATA).expanduser()
    if problem.has_data(folder):
        return folder
    made = datagen_command(problem, folder, output_dir / run.vocabulary)
    raise T2TError(f"no data for {run.problem} in {folder}: give --data_dir, or run {made}")


def _is_t2ts(name: str, problem: str) -> bool:
    """Whether a name is tensor2tensor's for a problem, and none of a problem here."""
    return t2t_names.is_problem(name, problem) and name not in registry.list_problems()


def _is_set_of(name: str, folder: Path) -> bool:
    """Whether an hparams set is tensor2tensor's and describes the model in a folder."""
    from t2t_revival.training.run import load_hparams

    if not name.startswith(T2T_SETS) or name not in registry.list_hparams():
        return False
    return registry.hparams(name).architecture() == load_hparams(folder).architecture()


def _check_names(values: flags.FlagValues, folder: Path) -> None:
    """Checks that problem and hparams set exist: where one is misspelt, so is the default output_dir."""
    try:
        if values.problem and t2t_names.problem_here(values.problem) not in registry.list_problems():
            registry.problem(values.problem)
        if values.hparams_set:
            registry.hparams(values.hparams_set)
    except T2TError as error:
        raise T2TError(f"no trained model in {folder}: {error}") from error
