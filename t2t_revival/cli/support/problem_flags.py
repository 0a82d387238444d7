"""The flags of problem and data that several commands share: definitions, problem, data generation."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from absl import flags

from t2t_revival import registry, t2t_names
from t2t_revival.cli.support import command, hparams_help, tensorflow_setup
from t2t_revival.cli.support.progress import ProgressBar
from t2t_revival.data.metadata import Metadata, unfinished_dir
from t2t_revival.data.workers import ShardRunner
from t2t_revival.errors import T2TError
from t2t_revival.hints import command_line
from t2t_revival.problems.problem import Problem
from t2t_revival.problems.text_problems import Text2TextProblem

DATA_DIR = "~/t2t_data"
STAGES = {  # of data generation
    "verifying": "verifying existing data",
    "reading": "reading the source",
    "vocabulary": "learning the vocabulary from a sample of {total:,} pairs",
}
DATA_FLAGS = (
    "problem",
    "data_dir",
    "tmp_dir",
    "data_source",
    "vocab_size",
    "vocab_file",
    "auto_trees",
    "gold_share",
    "t2t_usr_dir",
)


def define(values: flags.FlagValues) -> None:
    """Adds the flags of a command that generates data."""
    define_names(values)
    flags.DEFINE_string("data_dir", DATA_DIR, "Folder of vocabulary and shards.", flag_values=values)
    flags.DEFINE_string(
        "tmp_dir",
        None,
        "Folder for unpacked files; by default inside data_dir.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "data_source",
        None,
        "Source of sentence pairs: a folder with train.en train.de dev.en dev.de [test.en test.de] (for your "
        "languages; .gz too), sample, wmt14, or tfds:NAME/CONFIG. Source of trees: a Penn Treebank folder "
        "(with wsj/02 to wsj/23), a folder with train.trees dev.trees [test.trees], or sample. By default "
        "the source from which data_dir was made; for translation wmt14.",
        flag_values=values,
    )
    command.define_integer(
        "vocab_size",
        0,
        "Pieces of the vocabulary; 0 chooses by problem and corpus.",
        lower_bound=0,
        flag_values=values,
    )
    flags.DEFINE_string(
        "vocab_file",
        None,
        "An existing vocabulary, instead of learning one: vocab.*.spm, or T2T's vocab.*.subwords.",
        flag_values=values,
    )
    flags.DEFINE_list(
        "auto_trees",
        [],
        "parse_wsj_semi: files of automatically parsed sentences, or patterns such as 'parsed/*.trees'.",
        flag_values=values,
    )
    flags.DEFINE_float(
        "gold_share",
        0.0,
        "parse_wsj_semi: share of the treebank's trees, which are repeated, in the training examples; 0 "
        "takes every tree once.",
        lower_bound=0.0,
        upper_bound=0.99,
        flag_values=values,
    )


def define_names(values: flags.FlagValues) -> None:
    """Adds the flags that name the problem and the user's package."""
    flags.DEFINE_string("problem", None, "Problem, such as translate_ende.", flag_values=values)
    flags.DEFINE_string(
        "t2t_usr_dir",
        None,
        "Your package of problems and hparams sets. Its code is executed, and no other flag executes code: "
        "give only a package that you trust.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "registry_help",
        False,
        "List all problems, hparams sets and factors of learning_rate_schedule; with --hparams_set, all "
        "fields of that set.",
        flag_values=values,
    )


def problem_from(values: flags.FlagValues) -> Problem:
    """Imports the user's package, and returns the problem that the flags name.

    Raises:
        T2TError: the problem is missing or unknown; the user's package cannot be imported.
    """
    if values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    if not values.problem:
        raise T2TError(f"--problem is missing; known: {', '.join(registry.list_problems())}")
    own = {
        name: values[name].value
        for name in ("vocab_file", "auto_trees", "gold_share")
        if values[name].present
    }
    return registry.problem(
        values.problem,
        data_source=values.data_source,
        vocab_size=values.vocab_size,
        tmp_dir=values.tmp_dir,
        **own,
    )


def text_problem(values: flags.FlagValues) -> Text2TextProblem:
    """Returns the text-to-text problem that `--problem` names, for a command that reads none of its data.

    Raises:
        T2TError: the problem is unknown or of another kind.
    """
    if values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    name = t2t_names.registered_name(values.problem, registry.list_problems())
    problem = registry.problem(name)
    if not isinstance(problem, Text2TextProblem):
        raise T2TError(f"--problem={name} is not a problem of text to text")
    return problem


def same_data(values: flags.FlagValues) -> str:
    """The t2t-datagen command that generates the data of these flags."""
    asked = {name: values[name].value for name in DATA_FLAGS if values[name].present}
    return command_line("t2t-datagen", **asked)


def data_dir(values: flags.FlagValues) -> Path:
    """`--data_dir`, with ~ resolved.

    Raises:
        T2TError: it is a URL.
    """
    if "://" in values.data_dir:
        raise T2TError(
            f"--data_dir={values.data_dir}: a URL, and a folder is needed; mount it (by NFS or Cloud Storage "
            "FUSE) and give that folder"
        )
    return Path(values.data_dir).expanduser()


def print_registry(values: flags.FlagValues) -> None:
    """Prints everything registered, the user's too, or one hparams set (`--registry_help`)."""
    if values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    if "hparams_set" in values and values.hparams_set:
        print(hparams_help.describe_set(values))
        return
    for title, entries in (
        ("Problems", registry.list_problems()),
        ("Hparams sets", registry.list_hparams()),
        ("Factors of learning_rate_schedule", registry.list_schedule_factors()),
    ):
        print(f"{title}:")
        width = max(map(len, entries))
        for name, summary in entries.items():
            print(f"  {name:{width}}  {summary}".rstrip())


def generate_data(
    problem: Problem, values: flags.FlagValues, shard_runner: ShardRunner | None = None
) -> Metadata:
    """Generates the missing data of a problem in `--data_dir`, with progress on stderr.

    Args:
        problem: its data is generated.
        values: the command's flags.
        shard_runner: generates the shards; `None` uses processes on this machine.

    Raises:
        T2TError: as `Problem.generate_data`.
    """
    folder = data_dir(values)
    if not problem.has_data(folder) and uses_tensorflow(problem):
        tensorflow_setup.load_tensorflow(values)  # which TensorFlow Datasets would, and not in silence
    with ProgressBar("pairs") as bar:
        try:
            progress = partial(_show, bar)
            if shard_runner:
                return problem.generate_data(folder, progress=progress, shard_runner=shard_runner)
            return problem.generate_data(folder, progress=progress)
        except KeyboardInterrupt:
            kept = unfinished_dir(folder, problem.dataset_filename())
            if kept.is_dir():
                bar.note(
                    f"finished shards are kept, and listed in {kept}: the same command resumes after them"
                )
            raise


def uses_tensorflow(problem: Problem) -> bool:
    """Returns whether the source of a problem's data is TensorFlow Datasets, which imports TensorFlow."""
    source = str(problem.data_source or getattr(problem, "default_source", "wmt14"))
    return source == "wmt14" or source.startswith("tfds:")


def _show(bar: ProgressBar, stage: str, done: int, total: int) -> None:
    """Shows a stage of data generation and its pairs; see `generation.generate`."""
    if stage == "pairs":
        bar.update(done, total)
    else:
        bar.note(STAGES.get(stage, stage).format(total=total))
