"""The trainings of a reproduction: each is the work of t2t-trainer and t2t-decoder, and done once."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from t2t_revival import registry
from t2t_revival.errors import T2TError
from t2t_revival.files import text_lines
from t2t_revival.hparams import HParams
from t2t_revival.problems.problem import DEV, TEST, Text2TextProblem
from t2t_revival.reproduction.scales import Scale
from t2t_revival.training import checkpoints, curve_files
from t2t_revival.training.run import Run

Flags = Mapping[str, object]
Command = Callable[[str, Flags], None]  # runs a command, such as "t2t-trainer", with flags; raises T2TError
TRANSLATION = "translate_ende"
ANOTHER = "give another --output_dir, or remove that folder"


@dataclass(frozen=True)
class Runs:
    """What is trained for the tables, in folders `folder/runs/PROBLEM/NAME`, from data in `folder/data`.

    Attributes:
        folder: of the reproduction.
        scale: how large it is.
        command: runs a command of this project.
        data_source: where translation's or parsing's data comes from; None: the scale's, or what the data
            that is there was made from.
        trainer_flags: of each training besides, such as {"precision": "mixed_bfloat16"}.
        training: whether what is missing is trained; if not, what is missing is an error.
    """

    folder: Path
    scale: Scale
    command: Command
    data_source: str | None = None
    trainer_flags: Flags = field(default_factory=dict)
    training: bool = True

    @property
    def data_dir(self) -> Path:
        """Where vocabularies and shards are."""
        return self.folder / "data"

    def place(self, problem: str, name: str) -> Path:
        """The output_dir of a training."""
        return self.folder / "runs" / problem / name

    def make_data(self, problem: str, **flags: object) -> None:
        """Makes the data of a problem, or verifies what is there.

        Raises:
            T2TError: there is no source; what is there was made from another.
        """
        if self.training:
            self.command(
                "t2t-datagen",
                {"problem": problem, "data_dir": self.data_dir, "data_source": self.data_source, **flags},
            )

    def make_translations(self, problem: str = TRANSLATION) -> None:
        """`make_data` of a problem of translation, with the scale's vocabulary."""
        size = self.scale.vocab_size
        self.make_data(problem, **({"vocab_size": size} if size else {}))

    def translator(self, hparams_set: str, problem: str = TRANSLATION, changes: str = "") -> Path:
        """The output_dir of a set of the paper, adapted to the scale and trained.

        Args:
            hparams_set: its name.
            problem: what it learns.
            changes: to the set, as `--hparams` takes them.

        Raises:
            T2TError: as `trained`.
        """
        hparams = registry.hparams(hparams_set, changes)
        flags: dict[str, object] = {}
        if overrides := ",".join(filter(None, (changes, self.scale.overrides(hparams)))):
            flags["hparams"] = overrides
        return self.trained(problem, hparams_set, hparams_set, self.scale.adapted(hparams), flags)

    def trained(self, problem: str, name: str, hparams_set: str, hparams: HParams, flags: Flags) -> Path:
        """Trains, unless that is done, or goes on where a training was interrupted.

        Args:
            problem: what is learned.
            name: of the run.
            hparams_set: of the trainer.
            hparams: what the set and the flags come to.
            flags: of the trainer, besides what all have.

        Returns:
            Its output_dir.

        Raises:
            T2TError: it is missing and is not to be trained; or as the trainer.
        """
        place = self.place(problem, name)
        self._check(place, problem, hparams)
        if _is_done(place, hparams.train_steps):
            return place
        if not self.training:
            done = (
                f"only {_steps(place):,} of {hparams.train_steps:,} updates" if place.exists() else "no run"
            )
            raise T2TError(f"{name}: {done} in {place}: train it, without --norun")
        spread = self.scale.checkpoints
        self.command(
            "t2t-trainer",
            {
                "problem": problem,
                "hparams_set": hparams_set,
                "data_dir": self.data_dir,
                "output_dir": place,
                "local_eval_frequency": math.ceil(hparams.train_steps / spread) if spread else 0,
                "keep_checkpoint_max": hparams.average_checkpoints,
                "eval_bleu_sentences": 0,
                **self.trainer_flags,
                **flags,
            },
        )
        if not _is_done(place, hparams.train_steps):
            raise T2TError(f"{name} has not come to its end: the same command goes on")
        return place

    def _check(self, place: Path, problem: str, hparams: HParams) -> None:
        """Refuses a run of other settings, or of another vocabulary or dev split, as a row of the table.

        Raises:
            T2TError: `place` holds such a run.
        """
        found = HParams.load(place)
        if found is None:
            return
        for name, wanted in dataclasses.asdict(hparams).items():
            if (there := getattr(found, name)) != wanted:
                raise T2TError(f"{place} was trained with {name}={there}, not {wanted}: {ANOTHER}")
        data = text_problem(problem)
        if not data.has_data(self.data_dir):
            return
        if data.vocabulary(self.data_dir).fingerprint != Run.load(place).fingerprint:
            raise T2TError(f"{place} was trained with another vocabulary than {self.data_dir} has: {ANOTHER}")
        evaluations = curve_files.read_segments(place, curve_files.DEV, "perplexity")
        dev = data.data_fingerprint(DEV, self.data_dir)
        if evaluations and evaluations[-1].measured_on not in ("", dev):
            raise T2TError(f"{place} was measured on another dev split than {self.data_dir} has: {ANOTHER}")

    def is_finished(
        self, hparams_set: str, problem: str, split: str, average: bool, changes: str = ""
    ) -> bool:
        """Whether a `translator` is trained, and has decoded a split; see `outputs`."""
        hparams = self.scale.adapted(registry.hparams(hparams_set, changes))
        place = self.place(problem, hparams_set)
        return _is_done(place, hparams.train_steps) and _outputs(place, split, average).exist

    def split(self, problem: str) -> str:
        """What a finished model is measured on: the test split, or dev where there is none."""
        return TEST if TEST in text_problem(problem).metadata(self.data_dir).splits else DEV

    def outputs(self, place: Path, split: str, average: bool, beam_size: int | None = None) -> Outputs:
        """Outputs of a trained model for a split: of its last checkpoint, or of its average.

        Args:
            place: of the training.
            split: "dev" or "test".
            average: whether the last checkpoints are averaged first, as many as the set says.
            beam_size: None: the problem's.

        Raises:
            T2TError: they are missing and nothing is to be done about it; or as t2t-decoder.
        """
        found = _outputs(place, split, average, beam_size)
        if found.exist:
            return found
        if not self.training:
            raise T2TError(f"{found.outputs}: missing; make it, without --norun")
        checkpoint = place / checkpoints.file_name(_steps(place))
        if average:
            self.command("t2t-avg-all", {"output_dir": place})
            checkpoint = place / checkpoints.AVERAGED / checkpoint.name
        found.outputs.parent.mkdir(exist_ok=True)
        self.command(
            "t2t-decoder",
            {
                "output_dir": place,
                "data_dir": self.data_dir,
                "checkpoint_path": checkpoint,
                "dataset_split": split,
                "decode_to_file": found.outputs,
                "log_examples": 0,
                "decode_hparams": f"beam_size={beam_size}" if beam_size else None,
            },
        )
        return found

    def perplexity(self, place: Path) -> float:
        """Of a trained model, per subword of the dev split."""
        return _scores(place)[-1]["perplexity"]


@dataclass(frozen=True)
class Outputs:
    """Files of what a model gave for a split, and of what it should have given."""

    outputs: Path
    references: Path
    split: str

    @property
    def exist(self) -> bool:
        """Whether they are there."""
        return self.outputs.exists() and self.references.exists()

    def lines(self) -> tuple[list[str], list[str]]:
        """Outputs and references."""
        output, reference = (
            text_lines(path.read_bytes(), str(path)) for path in (self.outputs, self.references)
        )
        return output, reference


def text_problem(name: str) -> Text2TextProblem:
    """A registered problem of text to text.

    Raises:
        T2TError: it is of another kind.
    """
    problem = registry.problem(name)
    if not isinstance(problem, Text2TextProblem):
        raise T2TError(f"{name} is not a problem of text to text")
    return problem


def _steps(place: Path) -> int:
    """Updates of the newest checkpoint or, where that is gone, of the last evaluation; 0: none."""
    found = [float(checkpoint.step) for checkpoint in checkpoints.list_checkpoints(place)]
    return int(max([*found, *(row["step"] for row in _scores(place))], default=0))


def _outputs(place: Path, split: str, average: bool, beam_size: int | None = None) -> Outputs:
    """Where a model's outputs go."""
    words = [split, Path(checkpoints.file_name(_steps(place))).stem, *(["average"] if average else [])]
    stem = "-".join([*words, *([f"beam{beam_size}"] if beam_size else [])])
    return Outputs(place / "decoded" / f"{stem}.outputs", place / "decoded" / f"{stem}.targets", split)


def _is_done(place: Path, steps: int) -> bool:
    """Whether a training has come to its end, with its last evaluation."""
    return any(row["step"] >= steps for row in _scores(place))


def _scores(place: Path) -> list[dict[str, float]]:
    """The trainer's evaluations with a perplexity, oldest first."""
    return [row for row in curve_files.read_curve(place, curve_files.DEV) if "perplexity" in row]
