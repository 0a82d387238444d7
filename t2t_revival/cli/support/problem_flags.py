"""The flags of problem and data that several commands share."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from t2t_revival import registry, t2t_names
from t2t_revival.addons.imports.kinds import kind_of
from t2t_revival.addons.imports.t2t_folder import has_t2t_hparams, import_command, t2t_checkpoint
from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import beside
from t2t_revival.cli.support.flags import Flags, flag, group
from t2t_revival.cli.support.messages import ProgressBar
from t2t_revival.data.config import Metadata, unfinished_dir
from t2t_revival.data.mixture import is_mixture
from t2t_revival.data.workers import ShardRunner
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.hparams.hparams import HParams, meanings
from t2t_revival.hparams.size import count_weights
from t2t_revival.model_folder import RUN_FILE
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
BASE = "base"  # the paper's model, with which all sets are compared
COLUMN = 40  # where meanings begin
USUAL_PIECES = 8000  # of a vocabulary for both sides
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class ProblemFlags(Flags):
    """The flags that name the problem and the user's package."""

    problem: str | None = flag(None, "Problem, such as translate_ende.")
    t2t_usr_dir: str | None = flag(
        None,
        "Your package of problems and hparams sets. Its code is executed, and no other flag executes code: "
        "give only a package that you trust.",
    )
    registry_help: bool = flag(
        False,
        "List all problems, hparams sets, optimizers and factors of learning_rate_schedule; with "
        "--hparams_set, all fields of that set.",
    )

    @property
    def data_dir(self) -> str | None:
        """A flag of many of these commands."""
        return None

    def answer(self) -> bool:
        """Prints everything registered, the user's too, or one hparams set, if that is asked for."""
        if self.registry_help:
            self.import_usr_dir()
            print_registry(self.given.get("hparams_set"), self.changed)
        return self.registry_help

    def changed(self, hparams: HParams) -> HParams:
        """Returns the hparams that a training with these flags has."""
        return registry.problem(self.problem).hparams(hparams) if self.problem else hparams

    def import_usr_dir(self) -> None:
        """Imports the user's package, if there is one."""
        if self.t2t_usr_dir:
            registry.import_usr_dir(self.t2t_usr_dir)

    def problem_of(self, name: str) -> Problem:
        """Returns the problem of a name, without any of its data."""
        self.import_usr_dir()
        return registry.problem(t2t_names.registered_name(name, registry.list_problems()))

    def refuse_t2t(self, path: Path, name: str = "output_dir") -> Path:
        """Returns the path of a flag `name`.

        Raises:
            T2TError: its model was made elsewhere; the error has the command that imports it.
        """
        checkpoint = t2t_checkpoint(path)
        if checkpoint is None and not (path / RUN_FILE).exists() and has_t2t_hparams(path):
            raise T2TError(
                f"{path}: its hparams.json is tensor2tensor's, but there is no checkpoint model.ckpt-*.index "
                "to import: give another folder"
            )
        kind = kind_of(path) if checkpoint is None else None
        if kind:
            command = CommandLine("t2t-import-checkpoint", checkpoint=path, output_dir=f"{path}_imported")
            raise T2TError(
                f"{path} holds a model of {kind.name}. Import it: {command}; then give "
                f"--{name}={shlex.quote(f'{path}_imported')}"
            )
        if checkpoint is None:
            return path
        output_dir, importing = import_command(checkpoint, self.problem, self.data_dir)
        raise T2TError(
            f"{path} holds a checkpoint of tensor2tensor. Import it: {shlex.join(importing)}; then give "
            f"--{name}={shlex.quote(str(output_dir))}"
        )


@dataclass(frozen=True)
class DataFlags(ProblemFlags):
    """The flags of a command that generates data."""

    data_dir: str = flag(DATA_DIR, "Folder of vocabulary and shards.")
    data: MixedTreesConfig = group(
        MixedTreesConfig(), {name: name for name in OWN_FLAGS}, {"gold_share": (0, 0.99)}
    )

    @property
    def data_path(self) -> Path:
        """`--data_dir`, with ~ resolved."""
        return Path(self.data_dir).expanduser()

    def named_problem(self, vocab_files: Sequence[Path] = ()) -> Problem:
        """Imports the user's package, and returns the problem that the flags name.

        `vocab_files` are the vocabulary, or both, where `--vocab_file` gives none.
        """
        self.import_usr_dir()
        if not self.problem:
            raise T2TError(f"--problem is missing; known: {', '.join(registry.list_problems())}")
        own = {name: self.given[name] for name in OWN_FLAGS if name in self.given}
        if vocab_files:
            if self.data.vocab_size and not self.data.update_vocab:
                raise T2TError(
                    f"--vocab_size={self.data.vocab_size}: with --warm_start_from the vocabulary is that "
                    "model's; leave it out, or give --update_vocab"
                )
            own.setdefault("vocab_file", vocab_files)
        return registry.problem(self.problem, **own)

    def generate_data(
        self, problem: Problem, shard_runner: ShardRunner | None = None, overwrite: bool = False
    ) -> Metadata:
        """Generates the missing data of a problem in `--data_dir`, with progress on stderr.

        `shard_runner` generates the shards; `None` uses processes on this machine. `overwrite` replaces data
        that is there.
        """
        folder = self.data_path
        if not problem.has_data(folder) and uses_tensorflow(problem):
            tensorflow_setup.load_tensorflow()  # which TensorFlow Datasets would, and not in silence
        with ProgressBar("pairs") as bar:
            try:
                generate = partial(problem.generate_data, folder, progress=partial(show_generation, bar))
                if shard_runner:
                    generate = partial(generate, shard_runner=shard_runner)
                return generate(overwrite=True) if overwrite else generate()
            except KeyboardInterrupt:
                kept = unfinished_dir(folder, problem.forward.dataset_filename())
                if kept.is_dir():
                    said = (
                        f"finished shards are kept, and listed in {kept}: the same command resumes after them"
                    )
                    bar.note(said)
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


def print_registry(hparams_set: str | None, change: Callable[[HParams], HParams]) -> None:
    """Prints everything registered, or one hparams set; `change` makes it that of a training."""
    if hparams_set:
        print(_describe_set(hparams_set, change(registry.hparams(hparams_set))))
        return
    for title, entries in (
        ("Problems", registry.list_problems()),
        ("Hparams sets", registry.list_hparams()),
        ("Optimizers", registry.list_optimizers()),
        ("Factors of learning_rate_schedule", registry.list_schedule_factors()),
    ):
        print(f"{title}:")
        width = max(map(len, entries))
        for name, summary in entries.items():
            print(f"  {name:{width}}  {summary}".rstrip())


def _describe_set(name: str, changed: HParams) -> str:
    """Describes all fields of a set by group, each with its value and its meaning.

    A value that differs from the named set or from the paper's base model is marked, and has the other value
    in brackets.
    """
    shown = dataclasses.asdict(changed)
    beside = {each: dataclasses.asdict(registry.hparams(each)) for each in (name, BASE)}
    lines = [
        f"{name}: {registry.list_hparams()[name]}",
        "* marks a value that differs from the one in brackets, which is that of the set named there.",
        f"{count_weights(changed, USUAL_PIECES):,} weights with a vocabulary of {USUAL_PIECES:,} pieces.",
    ]
    for title, fields in meanings().items():
        lines += ["", title]
        for field, meaning in fields.items():
            others = [f"{at}: {found[field]}" for at, found in beside.items() if found[field] != shown[field]]
            lines += _field(f"{field}={shown[field]}", meaning, others)
    return "\n".join(lines)


def _field(assignment: str, meaning: str, others: list[str]) -> list[str]:
    """Formats a field: the meaning beside the value, or below a long value."""
    head = f"{'*' if others else ' '} {assignment}"
    brackets = f" [{'; '.join(others)}]".replace(": ", f":{NO_BREAK}") if others else ""
    above = [] if len(head) < COLUMN - 1 else [head]
    text = beside("" if above else head, meaning + brackets, COLUMN)
    return above + [line.replace(NO_BREAK, " ") for line in text]
