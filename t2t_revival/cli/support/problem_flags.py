"""The flags about problem and data, which several commands have, and what follows from them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from absl import flags

from t2t_revival import registry, t2t_names
from t2t_revival.cli import common, hparams_help
from t2t_revival.cli.lines import say
from t2t_revival.cli.progress import ProgressLine, duration
from t2t_revival.errors import T2TError
from t2t_revival.hints import command_line

if TYPE_CHECKING:
    from t2t_revival.data.metadata import Metadata
    from t2t_revival.data.workers import Engine
    from t2t_revival.problems.problem import Problem, Text2TextProblem

DATA_DIR = "~/t2t_data"
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
    """Adds the flags to those of a command that makes data."""
    define_names(values)
    flags.DEFINE_string("data_dir", DATA_DIR, "Where vocabulary and shards lie.", flag_values=values)
    flags.DEFINE_string(
        "tmp_dir",
        None,
        "Where compressed files are unpacked; by default inside data_dir.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "data_source",
        None,
        "Where sentence pairs come from: a folder with train.en train.de dev.en dev.de [test.en test.de] "
        "(your languages; .gz too), sample, wmt14, or tfds:NAME/CONFIG; for parsing a Penn Treebank folder "
        "(with wsj/02 to wsj/23), one with train.trees dev.trees [test.trees], or sample. By default what "
        "data_dir was made from, or for translation wmt14.",
        flag_values=values,
    )
    common.define_integer(
        "vocab_size",
        0,
        "Pieces of the vocabulary; 0: chosen by problem and corpus.",
        lower_bound=0,
        flag_values=values,
    )
    flags.DEFINE_string(
        "vocab_file",
        None,
        "A vocabulary to use instead of learning one: vocab.*.spm, or T2T's vocab.*.subwords.",
        flag_values=values,
    )
    flags.DEFINE_list(
        "auto_trees",
        [],
        "parse_wsj_semi: files of sentences that a parser parsed, or patterns such as 'parsed/*.trees'.",
        flag_values=values,
    )
    flags.DEFINE_float(
        "gold_share",
        0.0,
        "parse_wsj_semi: share of the training examples that the treebank's trees have, which come again and "
        "again for it; 0: every tree comes once.",
        lower_bound=0.0,
        upper_bound=0.99,
        flag_values=values,
    )


def define_names(values: flags.FlagValues) -> None:
    """Adds the flags that say what problems there are and which is meant."""
    flags.DEFINE_string("problem", None, "What is learned, such as translate_ende.", flag_values=values)
    flags.DEFINE_string(
        "t2t_usr_dir",
        None,
        "Your package of problems and hparams sets. Its code is run; no other flag has code of others run. "
        "Give only a package that you trust.",
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
    """The problem that the flags name, after the import of the user's package.

    Raises:
        T2TError: no or an unknown problem; the user's package cannot be imported.
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
    """The problem of text to text that `--problem` names, for a command that needs none of its data.

    Raises:
        T2TError: there is no such problem, or it is of another kind.
    """
    from t2t_revival.problems.problem import Text2TextProblem

    if values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    name = t2t_names.registered_name(values.problem, registry.list_problems())
    problem = registry.problem(name)
    if not isinstance(problem, Text2TextProblem):
        raise T2TError(f"--problem={name} is not a problem of text to text")
    return problem


def same_data(values: flags.FlagValues) -> str:
    """The t2t-datagen command that makes what these flags ask for."""
    asked = {name: values[name].value for name in DATA_FLAGS if values[name].present}
    return command_line("t2t-datagen", **asked)


def data_dir(values: flags.FlagValues) -> Path:
    """`--data_dir`, with ~ resolved.

    Raises:
        T2TError: it is a URL.
    """
    if "://" in values.data_dir:
        raise T2TError(
            f"--data_dir={values.data_dir}: a URL, and a folder is needed; mount what is there "
            "(by NFS or Cloud Storage FUSE) and give that folder"
        )
    return Path(values.data_dir).expanduser()


def print_registry(values: flags.FlagValues) -> None:
    """Prints what is registered, one line each, the user's too, or one hparams set (`--registry_help`)."""
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


def generate_data(problem: Problem, values: flags.FlagValues, engine: Engine | None = None) -> Metadata:
    """Makes what is missing of the problem's data in `--data_dir`, with progress lines on stderr.

    Args:
        problem: whose data.
        values: the command's flags.
        engine: what makes the shards; None: processes on this machine.

    Raises:
        T2TError: as `Problem.generate_data`.
    """
    if not problem.has_data(data_dir(values)) and uses_tensorflow(problem):
        common.load_tensorflow(values)  # which TensorFlow Datasets would, and not in silence
    progress = Progress(sys.stderr)
    try:
        if engine:
            return problem.generate_data(data_dir(values), progress=progress, engine=engine)
        return problem.generate_data(data_dir(values), progress=progress)
    except KeyboardInterrupt:
        progress.end()
        _say_kept(problem, data_dir(values))
        raise
    finally:
        progress.end()


def _say_kept(problem: Problem, folder: Path) -> None:
    """Says that an interrupted generation resumes, where something of it is kept."""
    from t2t_revival.data.generation import unfinished_dir

    notes = unfinished_dir(folder, problem.dataset_filename())
    if notes.is_dir():
        say(f"finished shards are kept, and listed in {notes}: the same command resumes after them")


def uses_tensorflow(problem: Problem) -> bool:
    """Whether making the problem's data runs TensorFlow in this process: its source is of TFDS."""
    source = str(problem.data_source or getattr(problem, "default_source", "wmt14"))
    return source == "wmt14" or source.startswith("tfds:")


class Progress:
    """Says how far generation is."""

    def __init__(self, stream: TextIO) -> None:
        self._line = ProgressLine(stream)
        self._stage = ""
        self._began = 0.0
        self._complete = False
        self._before = 0  # pairs done when the stage began

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Takes note of a stage and its pairs; see `generation.generate`."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._began, self._before = stage, now, done
            self._line.show(self._text(done, total, 0.0))
            if stage != "pairs":
                self._line.end()
            return
        if self._complete or (done < total and not self._line.due()):
            return
        self._complete = done == total
        self._line.show(self._text(done, total, now - self._began))

    def end(self) -> None:
        """Ends the line that stands on the terminal."""
        self._line.end()

    def _text(self, done: int, total: int, seconds: float) -> str:
        if self._stage == "verifying":
            return "verifying what is there"
        if self._stage == "reading":
            return "reading the source"
        if self._stage == "vocabulary":
            return f"learning the vocabulary from a sample of {total:,} pairs"
        if self._stage != "pairs":
            return self._stage
        text = f"{done:,} of {total:,} pairs ({100 * done // max(total, 1)}%)"
        rate = (done - self._before) / seconds if seconds else 0.0
        if not rate:
            return text
        return f"{text}, {rate:,.0f} pairs/s, {duration((total - done) / rate)} left"
