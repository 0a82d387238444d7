"""The trainings of a reproduction: each is the work of t2t-trainer and t2t-decoder, and done once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from t2t_revival import registry
from t2t_revival.errors import T2TError
from t2t_revival.files import text_lines
from t2t_revival.hparams import HParams
from t2t_revival.reproduction.scales import Scale
from t2t_revival.training.csv_rows import read_rows

Flags = Mapping[str, object]
Command = Callable[[str, Flags], None]  # runs a command, such as "t2t-trainer", with flags; raises T2TError
TRANSLATION = "translate_ende"


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
        if _steps(place) >= hparams.train_steps:
            return place
        if not self.training:
            done = (
                f"only {_steps(place):,} of {hparams.train_steps:,} updates" if place.exists() else "no run"
            )
            raise T2TError(f"{name}: {done} in {place}: train it, without --norun")
        if self.scale.checkpoints:
            flags = {"local_eval_frequency": hparams.train_steps // self.scale.checkpoints, **flags}
        self.command(
            "t2t-trainer",
            {
                "problem": problem,
                "hparams_set": hparams_set,
                "data_dir": self.data_dir,
                "output_dir": place,
                "eval_bleu_sentences": 0,
                **self.trainer_flags,
                **flags,
            },
        )
        if _steps(place) < hparams.train_steps:
            raise T2TError(f"{name} has not come to its end: the same command goes on")
        return place

    def outputs(self, place: Path, split: str, average: bool, decode_hparams: str = "") -> Outputs:
        """Outputs of a trained model for a split: of its last checkpoint, or of its average.

        Args:
            place: of the training.
            split: "dev" or "test".
            average: whether the last checkpoints are averaged first, as many as the set says.
            decode_hparams: how to decode; empty: the problem's own way.

        Raises:
            T2TError: they are missing and nothing is to be done about it; or as t2t-decoder.
        """
        stem = place / "decoded" / f"{split}{'-average' if average else ''}"
        found = Outputs(stem.with_suffix(".outputs"), stem.with_suffix(".targets"))
        if found.outputs.exists() and found.references.exists():
            return found
        if not self.training:
            raise T2TError(f"{found.outputs}: missing; make it, without --norun")
        step = _steps(place)
        checkpoint = place / f"model.ckpt-{step}.npz"
        if average:
            self.command("t2t-avg-all", {"output_dir": place})
            checkpoint = place / "averaged" / checkpoint.name
        found.outputs.parent.mkdir(exist_ok=True)
        self.command(
            "t2t-decoder",
            {
                "output_dir": place,
                "checkpoint_path": checkpoint,
                "dataset_split": split,
                "decode_to_file": found.outputs,
                "log_examples": 0,
                **({"decode_hparams": decode_hparams} if decode_hparams else {}),
            },
        )
        return found


@dataclass(frozen=True)
class Outputs:
    """Files of what a model gave for a split, and of what it should have given."""

    outputs: Path
    references: Path

    def lines(self) -> tuple[list[str], list[str]]:
        """Outputs and references."""
        output, reference = (
            text_lines(path.read_bytes(), str(path)) for path in (self.outputs, self.references)
        )
        return output, reference


def dev_scores(place: Path) -> dict[str, float]:
    """The last scores on dev of a training: loss, perplexity, accuracy.

    Raises:
        T2TError: there are none.
    """
    rows = read_rows(place / "dev.csv")
    if not rows:
        raise T2TError(f"{place / 'dev.csv'}: no scores: train it with t2t-reproduce")
    return {name: float(cell) for name, cell in rows[-1].items() if cell}


def _steps(place: Path) -> int:
    """Updates up to the last evaluation, which follows a checkpoint; 0: none."""
    rows = read_rows(place / "dev.csv")
    return int(rows[-1]["step"]) if rows else 0
