"""The flags of problem and data that several commands share: definitions, problem, data generation.

All functions raise `T2TError` for flags that are missing or wrong.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from absl import flags

from t2t_revival import registry, t2t_names
from t2t_revival.cli.support import command, tensorflow_setup
from t2t_revival.cli.support.field_flags import define_fields
from t2t_revival.cli.support.messages import ProgressBar
from t2t_revival.data.config import SETTINGS, DataConfig
from t2t_revival.data.metadata import Metadata, unfinished_dir
from t2t_revival.data.mixture import is_mixture
from t2t_revival.data.workers import ShardRunner
from t2t_revival.errors import T2TError
from t2t_revival.problems.parse_wsj import MixedTreesConfig
from t2t_revival.problems.problem import Problem

DATA_DIR = "~/t2t_data"
STAGES = {  # of data generation
    "verifying": "verifying existing data",
    "reading": "reading the source",
    "cleaning": "cleaning the pairs of train",
    "aligning": "aligning the words of train",
    "vocabulary": "learning the vocabulary from a sample of {total:,} pairs",
}
OWN_FLAGS = tuple(field.name for field in dataclasses.fields(MixedTreesConfig))  # of a problem


def define(values: flags.FlagValues) -> None:
    """Adds the flags of a command that generates data."""
    define_names(values)
    command.define(values, DATA_DIR, data_dir="Folder of vocabulary and shards.")
    define_fields(values, DataConfig, {name: name for name in SETTINGS})
    trees = {name: name for name in OWN_FLAGS if name not in SETTINGS}
    define_fields(values, MixedTreesConfig, trees, {"gold_share": (0, 0.99)})


def define_names(values: flags.FlagValues) -> None:
    """Adds the flags that name the problem and the user's package."""
    command.define(
        values,
        None,
        problem="Problem, such as translate_ende.",
        t2t_usr_dir="Your package of problems and hparams sets. Its code is executed, and no other flag "
        "executes code: give only a package that you trust.",
    )
    command.define(
        values,
        False,
        registry_help="List all problems, hparams sets, optimizers and factors of learning_rate_schedule; "
        "with --hparams_set, all fields of that set.",
    )


def problem_from(values: flags.FlagValues, vocab_files: Sequence[Path] = ()) -> Problem:
    """Imports the user's package, and returns the problem that the flags name.

    `vocab_files` are the vocabulary, or both, where `--vocab_file` gives none.
    """
    if values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    if not values.problem:
        raise T2TError(f"--problem is missing; known: {', '.join(registry.list_problems())}")
    own = {name: values[name].value for name in OWN_FLAGS if values[name].present}
    if vocab_files:
        if values.vocab_size and not values.update_vocab:
            raise T2TError(
                f"--vocab_size={values.vocab_size}: with --warm_start_from the vocabulary is that model's; "
                "leave it out, or give --update_vocab"
            )
        own.setdefault("vocab_file", vocab_files)
    return registry.problem(values.problem, **own)


def text_problem(values: flags.FlagValues, name: str | None = None) -> Problem:
    """Returns the problem of a name, by default `--problem`, without any of its data."""
    if values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    name = t2t_names.registered_name(name or values.problem, registry.list_problems())
    return registry.problem(name)


def data_dir(values: flags.FlagValues) -> Path:
    """`--data_dir`, with ~ resolved."""
    return Path(values.data_dir).expanduser()


def generate_data(
    problem: Problem,
    values: flags.FlagValues,
    shard_runner: ShardRunner | None = None,
    overwrite: bool = False,
) -> Metadata:
    """Generates the missing data of a problem in `--data_dir`, with progress on stderr.

    `shard_runner` generates the shards; `None` uses processes on this machine. `overwrite` replaces data that
    is there.
    """
    folder = data_dir(values)
    if not problem.has_data(folder) and uses_tensorflow(problem):
        tensorflow_setup.load_tensorflow(values)  # which TensorFlow Datasets would, and not in silence
    with ProgressBar("pairs") as bar:
        try:
            generate = partial(problem.generate_data, folder, progress=partial(show_generation, bar))
            if shard_runner:
                generate = partial(generate, shard_runner=shard_runner)
            return generate(overwrite=True) if overwrite else generate()
        except KeyboardInterrupt:
            name = problem.forward.dataset_filename()
            for kept in (
                unfinished_dir(folder, name),
                *folder.glob(unfinished_dir(folder, f"{name}.*").name),
            ):
                if kept.is_dir():
                    bar.note(
                        f"finished shards are kept, and listed in {kept}: the same command resumes after them"
                    )
            raise


def uses_tensorflow(problem: Problem) -> bool:
    """Returns whether the source of a problem's data is TensorFlow Datasets, which imports TensorFlow."""
    source = problem.config.data_source or problem.default_source
    corpora = problem.mixture(source).corpora if is_mixture(source) else ()
    sources = [corpus.source for corpus in corpora] or [source]
    return any(each == "wmt14" or each.startswith("tfds:") for each in sources)


def show_generation(bar: ProgressBar, stage: str, done: int, total: int) -> None:
    """Shows a stage of data generation and its pairs; see `generation.generate`."""
    if stage == "pairs":
        bar.update(done, total)
    else:
        bar.note(STAGES.get(stage, stage).format(total=total))
