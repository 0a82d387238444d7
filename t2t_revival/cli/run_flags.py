"""The flags about a training run, which several commands have, and what follows from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival import registry
from t2t_revival.cli.lines import say
from t2t_revival.errors import T2TError
from t2t_revival.files import is_file_name

if TYPE_CHECKING:
    from t2t_revival.decoding.options import DecodeHParams
    from t2t_revival.training.checkpoint_file import DamagedError
    from t2t_revival.training.run import Run

TRAIN_DIR = "~/t2t_train"


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
        return Path(values.output_dir).expanduser()
    if not values.problem:
        raise T2TError("--problem is missing, or --output_dir")
    names = (values.problem, hparams_set(values))
    if strange := [name for name in names if not is_file_name(name)]:
        raise T2TError(f"{strange[0]!r} is no name of a problem or hparams set; --registry_help lists all")
    return Path(TRAIN_DIR).expanduser().joinpath(*names)


def open_run(values: flags.FlagValues) -> tuple[Path, Run]:
    """The output_dir and what was trained there; flags that name a problem or an hparams set must agree.

    Raises:
        T2TError: the flags name no output_dir, an unknown problem or hparams set, or not what was trained;
            there is no trained model, or its run.json is damaged.
    """
    folder = output_dir(values)
    return folder, run_in(values, folder)


def run_in(values: flags.FlagValues, folder: Path) -> Run:
    """What was trained in a folder; see `open_run`."""
    from t2t_revival.training.run import FILE_NAME, Run

    if "t2t_usr_dir" in values and values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    if not (folder / FILE_NAME).exists() and "t2t_usr_dir" in values:  # else it may be a user's problem
        _check_names(values, folder)
    run = Run.load(folder)
    for flag, found in (("problem", run.problem), ("hparams_set", run.hparams_set)):
        if values[flag].value not in (None, found):
            raise T2TError(f"--{flag}={values[flag].value}: {folder} holds a model of {found}")
    return run


def _check_names(values: flags.FlagValues, folder: Path) -> None:
    """Checks that problem and hparams set exist: where one is misspelt, so is the default output_dir."""
    try:
        if values.problem:
            registry.problem(values.problem)
        if values.hparams_set:
            registry.hparams(values.hparams_set)
    except T2TError as error:
        raise T2TError(f"no trained model in {folder}: {error}") from error
