"""The flags of a training run that several commands share: definitions, output_dir, run, model.

All functions raise `T2TError` for flags that are missing or wrong, and for a folder without a trained model.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags

from t2t_revival import registry, t2t_names
from t2t_revival.checkpoints.best import list_best
from t2t_revival.checkpoints.directory import list_averaged, list_checkpoints
from t2t_revival.checkpoints.selection import taking_next
from t2t_revival.cli.support import command, problem_flags
from t2t_revival.cli.support.messages import say, warn_of_corruption
from t2t_revival.decoding import trained_models
from t2t_revival.decoding.markup.patterns import KINDS
from t2t_revival.decoding.options import MEANS, PROBABILITIES, DecodeHParams
from t2t_revival.decoding.shards import MAX_SHARDS
from t2t_revival.errors import T2TError
from t2t_revival.hparams.hparams import FILE_NAME as HPARAMS_FILE
from t2t_revival.model_folder import RUN_FILE, ModelFolder, Run
from t2t_revival.t2t_import.folder import has_t2t_hparams, import_command, t2t_checkpoint
from t2t_revival.utils.files import is_file_name

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

TRAIN_DIR = "~/t2t_train"
SPLIT_SENTENCES = "Translate each sentence of a line for itself; needs the package sentencex."
TEXT_OPTIONS = ("split_sentences", "markup")
FORMATS = TEXT, JSONL = "text", "jsonl"  # of inputs and of outputs
T2T_SETS = "transformer_"  # how the names of its sets begin


def define(values: flags.FlagValues) -> None:
    """Adds the flags of a run to a command's, which has `--problem` already."""
    command.define(
        values,
        None,
        hparams_set="Named set of hyperparameters, such as base or big.",
        output_dir=f"Folder of the run and its checkpoints; by default {TRAIN_DIR}/PROBLEM/HPARAMS_SET.",
    )


def define_model(values: flags.FlagValues) -> None:
    """Adds the flags of a command that loads a trained model."""
    problem_flags.define_names(values)
    define(values)
    define_checkpoint(
        values,
        "by default output_dir's newest, or its average; its best where early stopping ended the training.",
    )


def define_checkpoint(values: flags.FlagValues, default: str) -> None:
    """Adds `--checkpoint`, which has T2T's name too; the help ends with the default."""
    text = f"newest, best or average, or a checkpoint's file, or a folder of checkpoints; {default}"
    command.define(values, None, checkpoint=text)
    values["checkpoint_path"] = values["checkpoint"]


def define_decode_hparams(values: flags.FlagValues, text: str = "", default: str | None = "") -> None:
    """Adds `--decode_hparams`; `text` ends its help."""
    command.define(
        values,
        default,
        decode_hparams=f"Changes to the decoding, such as beam_size=4,alpha=0.6,extra_length=50.{text}",
    )


def define_text_options(values: flags.FlagValues) -> None:
    """Adds the flags of `text_options`."""
    command.define(values, False, split_sentences=SPLIT_SENTENCES)
    flags.DEFINE_enum(
        "markup",
        "",
        ["", *KINDS],
        "Lines have tags and placeholders, which come out as they are, at the words that they belong to.",
        flag_values=values,
    )


def text_options(values: flags.FlagValues, options: DecodeHParams) -> DecodeHParams:
    """Returns options with the `TEXT_OPTIONS` that are given as flags."""
    return replace(options, **{name: values[name].value for name in TEXT_OPTIONS if values[name].value})


def define_output_format(values: flags.FlagValues) -> None:
    """Adds `--output_format`."""
    flags.DEFINE_enum(
        "output_format",
        TEXT,
        FORMATS,
        "text: a line for each output; jsonl: a JSON object with its score and the details that "
        "--decode_hparams asks for, by alignments, token_scores and alternatives.",
        flag_values=values,
    )


def check_details(values: flags.FlagValues, options: DecodeHParams | None, of_scores: bool = False) -> None:
    """Raises T2TError for details that lines of text do not have; `of_scores`, no alignments either."""
    names = ["token_scores", "alternatives", *["alignments"] * of_scores]
    for name in names if options and values.output_format != JSONL else ():
        if getattr(options, name):
            raise T2TError(f"decode_hparams: {name} needs --output_format=jsonl")


def define_ensemble(values: flags.FlagValues) -> None:
    """Adds the flags of an ensemble."""
    command.define(
        values,
        [],
        ensemble="Instead of output_dir: folders of several models of one vocabulary, which are decoded as "
        "one, by the mean of their probabilities of each token.",
    )
    flags.DEFINE_enum(
        "ensemble_mean",
        PROBABILITIES,
        MEANS,
        "Whether the mean is of the probabilities or of their logarithms.",
        flag_values=values,
    )


def ensemble(values: flags.FlagValues) -> list[Path]:
    """The folders of `--ensemble`; none where the command has no such flag, or it is not given.

    Raises:
        T2TError: there is one folder only, or an output_dir beside them.
    """
    folders = values.ensemble if "ensemble" in values else []
    if "ensemble" in values and not folders and values["ensemble_mean"].present:
        raise T2TError("--ensemble_mean has no effect without --ensemble")
    if len(folders) == 1:
        raise T2TError(f"--ensemble={folders[0]}: an ensemble has two folders or more, separated by commas")
    if folders and values.output_dir:
        raise T2TError("--output_dir and --ensemble cannot be combined: give one of them")
    return [refuse_t2t(Path(name).expanduser(), values, "ensemble") for name in folders]


def define_shards(values: flags.FlagValues, text: str) -> None:
    """Adds the flags of `Shard`; `text` ends the help of `--decode_shards`."""
    command.define(values, 0, worker_id="Number of this decoder among --decode_shards, counted from 0.")
    command.define_integer(
        "decode_shards",
        1,
        f"Decoders that share the input, each started with its own --worker_id. {text}",
        lower_bound=1,
        upper_bound=MAX_SHARDS,
        flag_values=values,
    )


def define_split_dir(values: flags.FlagValues) -> None:
    """Adds the `--data_dir` of `ModelFolder.find_data`."""
    command.define(
        values,
        None,
        data_dir="Folder of the split's shards; by default the one that the model was trained from.",
    )


def decode_options(text: str | None, run: Run) -> DecodeHParams:
    """Parses `--decode_hparams` on top of the run's own; warns of a batch_size that counts sentences."""
    options = DecodeHParams.parse(text or "", run.decode_hparams)
    if warning := options.batch_size_warning:
        say(f"warning: {warning}")
    return options


def model_files(values: flags.FlagValues, folder: Path, run: Run) -> dict[str, Path]:
    """The files from which a trained model is loaded, by their names for errors."""
    chosen = Path(values.checkpoint or folder).expanduser()
    folders = ensemble(values) or [folder]
    lists = list_checkpoints, list_averaged, list_best
    checkpoints = [one for find in lists for each in folders for one in find(each)]
    checkpoints += list_checkpoints(chosen)
    paths = [
        chosen,
        chosen.with_name(f"{chosen.name}.npz"),
        *(each / name for name in (HPARAMS_FILE, RUN_FILE, *run.vocabularies) for each in folders),
    ]
    return {f"the model's {path}": path for path in [*paths, *(one.path for one in checkpoints)]}


def hparams_set(values: flags.FlagValues) -> str:
    """The value of `--hparams_set`, which must be given."""
    if not values.hparams_set:
        raise T2TError("--hparams_set is missing, such as base or big; --registry_help lists all")
    return values.hparams_set


def output_dir(values: flags.FlagValues) -> Path:
    """Resolves `--output_dir`, or the default folder of problem and hparams set; rejects tensor2tensor's."""
    if values.output_dir:
        return refuse_t2t(Path(values.output_dir).expanduser(), values)
    if not values.problem:
        raise T2TError("--problem is missing; give it with --hparams_set, or give --output_dir")
    names = (values.problem, hparams_set(values))
    if invalid := [name for name in names if not is_file_name(name)]:
        raise T2TError(
            f"{invalid[0]!r} is not a valid name of a problem or hparams set: --registry_help lists all"
        )
    folder = Path(TRAIN_DIR).expanduser().joinpath(*names)
    here = t2t_names.problem_here(values.problem)
    if here and not folder.exists():
        folder = folder.parents[1] / here / folder.name
    return refuse_t2t(folder, values)


def refuse_t2t(path: Path, values: flags.FlagValues, flag: str = "output_dir") -> Path:
    """Returns a flag's path; of tensor2tensor's, the error has the command that imports its checkpoint."""
    checkpoint = t2t_checkpoint(path)
    if checkpoint is None and has_t2t_hparams(path):
        raise T2TError(
            f"{path}: its hparams.json is tensor2tensor's, but there is no checkpoint model.ckpt-*.index to "
            "import: give another folder"
        )
    if checkpoint is None:
        return path
    data_dir = values.data_dir if "data_dir" in values else None
    output_dir, importing = import_command(checkpoint, values.problem, data_dir)
    raise T2TError(
        f"{path} holds a checkpoint of tensor2tensor. Import it: {shlex.join(importing)}; then give "
        f"--{flag}={shlex.quote(str(output_dir))}"
    )


def open_run(values: flags.FlagValues) -> tuple[Path, Run]:
    """Returns the output_dir, or the first of an ensemble, and its run.

    The flags of problem and hparams set must agree with it. tensor2tensor's name of the problem agrees, and
    so does its hparams set of the same model.
    """
    folder = next(iter(ensemble(values)), None) or output_dir(values)
    if "checkpoint" in values and values.checkpoint:
        refuse_t2t(Path(values.checkpoint).expanduser(), values)
    return folder, run_in(values, folder)


def run_in(values: flags.FlagValues, folder: Path) -> Run:
    """Loads the run of a folder; see `open_run`."""
    if "t2t_usr_dir" in values and values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    if not ModelFolder(folder).has_run and "t2t_usr_dir" in values:  # else it may be a user's problem
        _check_names(values, folder)
    run = Run.load(refuse_t2t(folder, values))
    for flag, own, agrees in (
        ("problem", run.problem, _is_t2t_name(values.problem, run.problem)),
        ("hparams_set", run.hparams_set, _is_set_of(values.hparams_set, folder)),
    ):
        given = values[flag].value
        if given not in (None, own) and not agrees:
            raise T2TError(
                f"--{flag}={given}: {folder} holds a model of {own}; omit the flag, or give another folder"
            )
    return run


def load_translator(
    values: flags.FlagValues, output_dir: Path, options: DecodeHParams, **settings: Any
) -> tuple[Translator, str, str]:
    """Loads the model of `--checkpoint`, or an ensemble; also returns its file, and its step, in words."""
    from t2t_revival.decoding.translator import Translator

    if folders := ensemble(values):
        asked = values.checkpoint

        def load() -> tuple[Translator, list[trained_models.TrainedModel]]:
            models = trained_models.open_models(folders, "ensemble", asked, warn_of_corruption)
            mean = values.ensemble_mean
            return trained_models.load_translator(models, options, mean=mean, **settings), models

        translator, models = taking_next(load, asked, warn_of_corruption)
        files = " and ".join(str(one.checkpoint.path) for one in models)
        return translator, files, f"an ensemble of {len(models)}"
    settings["data_dir"] = values.data_dir if "data_dir" in values else None
    translator = Translator.load(
        output_dir, values.checkpoint, options, on_damaged=warn_of_corruption, **settings
    )
    checkpoint = translator.checkpoint
    assert checkpoint is not None
    step = f"step {checkpoint.step:,}{', an average' if checkpoint.averaged else ''}"
    return translator, str(checkpoint.path), step


def named(values: flags.FlagValues) -> dict[str, str]:
    """The flags that name the run in a proposed command: those that this command was called with."""
    names = ("output_dir",) if values.output_dir else ("problem", "hparams_set")
    return {name: values[name].value for name in (*names, "t2t_usr_dir")}


def _is_t2t_name(name: str | None, problem: str) -> bool:
    """Checks for tensor2tensor's name of a problem that is not the name of a problem here."""
    return name is not None and t2t_names.is_problem(name, problem) and name not in registry.list_problems()


def _is_set_of(name: str | None, folder: Path) -> bool:
    """Checks for an hparams set of tensor2tensor that describes the model in a folder."""
    if not name or not name.startswith(T2T_SETS) or name not in registry.list_hparams():
        return False
    return registry.hparams(name).architecture() == ModelFolder(folder).hparams.architecture()


def _check_names(values: flags.FlagValues, folder: Path) -> None:
    """Checks that problem and hparams set exist: where one is misspelt, so is the default output_dir."""
    try:
        if values.problem and t2t_names.problem_here(values.problem) not in registry.list_problems():
            registry.problem(values.problem)
        if values.hparams_set:
            registry.hparams(values.hparams_set)
    except T2TError as error:
        raise T2TError(f"no trained model in {folder}: {error}") from error
