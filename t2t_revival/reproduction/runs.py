"""Trainings of a reproduction, each made once by t2t-trainer and t2t-decoder."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from t2t_revival import curve_files, registry
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import DEV, TEST
from t2t_revival.reproduction.scales import Scale
from t2t_revival.utils.files import text_lines
from t2t_revival.utils.made_of import MadeOf

Flags = Mapping[str, object]
Command = Callable[[str, Flags], None]  # runs a command such as "t2t-trainer"; may raise T2TError
TRANSLATION = "translate_ende"
NEW_FOLDER = "use another --output_dir, or remove that folder"


@dataclass(frozen=True)
class Runs:
    """The trainings behind the tables, in `folder/runs/PROBLEM/NAME`, with their data in `folder/data`.

    Attributes:
        folder: folder of the reproduction.
        scale: sizes of its models.
        command: runs a command of this project.
        data_source: source of the translation or parsing data. `None` uses that of the data in `folder`.
        trainer_flags: further flags of every training, such as {"precision": "mixed_bfloat16"}.
        train_missing: train what is missing; otherwise a missing run is an error.
    """

    folder: Path
    scale: Scale
    command: Command
    data_source: str | None = None
    trainer_flags: Flags = field(default_factory=dict)
    train_missing: bool = True

    @property
    def data_dir(self) -> Path:
        """Folder of vocabularies and shards."""
        return self.folder / "data"

    def output_dir(self, problem: str, name: str) -> Path:
        return self.folder / "runs" / problem / name

    def make_data(self, problem: str, **flags: object) -> None:
        """Generates the data of a problem, or verifies existing data.

        Raises:
            T2TError: there is no source, or the existing data was generated from another one.
        """
        if self.train_missing:
            self.command(
                "t2t-datagen",
                {"problem": problem, "data_dir": self.data_dir, "data_source": self.data_source, **flags},
            )

    def make_translation_data(self, problem: str = TRANSLATION) -> None:
        """Generates the data of a translation problem, with the scale's vocabulary size."""
        size = self.scale.vocab_size
        self.make_data(problem, **({"vocab_size": size} if size else {}))

    def train_translator(self, hparams_set: str, problem: str = TRANSLATION, changes: str = "") -> Path:
        """Trains one of the paper's hparams sets, with `changes` as for `--hparams`, adapted to the scale.

        Returns and errors are those of `train`.
        """
        hparams = registry.hparams(hparams_set, changes)
        flags: dict[str, object] = {}
        if overrides := ",".join(filter(None, (changes, self.scale.overrides(hparams)))):
            flags["hparams"] = overrides
        return self.train(problem, hparams_set, hparams_set, self.scale.adapt(hparams), flags)

    def train(self, problem: str, name: str, hparams_set: str, hparams: HParams, flags: Flags) -> Path:
        """Starts or resumes the training `name`, unless it is complete, and returns its output_dir.

        `hparams` are those of the set after the overrides in `flags`, the trainer's flags for this run.

        Raises:
            T2TError: the run is missing and not to be trained, or was made with other settings or data; or
                the trainer fails.
        """
        output_dir = self.output_dir(problem, name)
        self._check_same_run(output_dir, problem, hparams)
        if _is_complete(output_dir, hparams.train_steps):
            return output_dir
        if not self.train_missing:
            steps = f"only {_steps(output_dir):,} of {hparams.train_steps:,} updates"
            state = steps if output_dir.exists() else "no run"
            raise T2TError(f"{name}: {state} in {output_dir}: leave out --norun to train it")
        count = self.scale.checkpoints
        eval_frequency = math.ceil(hparams.train_steps / count) if count else 0
        self.command(
            "t2t-trainer",
            {
                "problem": problem,
                "hparams_set": hparams_set,
                "data_dir": self.data_dir,
                "output_dir": output_dir,
                "local_eval_frequency": eval_frequency,
                "keep_checkpoint_max": hparams.average_checkpoints,
                "eval_bleu_sentences": 0,
                **self.trainer_flags,
                **flags,
            },
        )
        if not _is_complete(output_dir, hparams.train_steps):
            raise T2TError(f"{name} stopped before its last update: the same command resumes it")
        return output_dir

    def _check_same_run(self, output_dir: Path, problem: str, hparams: HParams) -> None:
        """Rejects an output_dir of a run with other settings, another vocabulary or another dev split."""
        trained = HParams.load(output_dir)
        if trained is None:
            return
        made, now = dataclasses.asdict(trained), dataclasses.asdict(hparams)
        known = registry.problem(problem)
        if known.has_data(self.data_dir):
            data = known.open(self.data_dir)
            made["vocabulary"] = ModelFolder(output_dir).run.fingerprint
            now["vocabulary"] = data.vocabularies.inputs.fingerprint
            if evaluations := curve_files.read_segments(output_dir, curve_files.DEV, "perplexity"):
                made["dev split"], now["dev split"] = evaluations[-1].measured_on, data.fingerprint(DEV)
        MadeOf(made).check(MadeOf(now), f"{output_dir} was trained with", NEW_FOLDER)

    def is_finished(
        self, hparams_set: str, problem: str, split: str, average: bool, changes: str = ""
    ) -> bool:
        """Returns whether a translator is trained and has decoded a split; see `decode`."""
        hparams = self.scale.adapt(registry.hparams(hparams_set, changes))
        output_dir = self.output_dir(problem, hparams_set)
        return _is_complete(output_dir, hparams.train_steps) and _decoded(output_dir, split, average).exist

    def test_split(self, problem: str) -> str:
        """Returns the split for final scores: test, or dev where the data has no test split."""
        return TEST if TEST in registry.problem(problem).open(self.data_dir).metadata.splits else DEV

    def decode(self, output_dir: Path, split: str, average: bool, beam_size: int | None = None) -> Decoded:
        """Decodes a split with the last checkpoint of a complete training, unless that is done.

        With `average`, the last checkpoints are averaged first, as many as the hparams set says. Without a
        `beam_size` the problem's is used.

        Raises:
            T2TError: the outputs are missing and not to be made, or t2t-decoder fails.
        """
        decoded = _decoded(output_dir, split, average, beam_size)
        if decoded.exist:
            return decoded
        if not self.train_missing:
            raise T2TError(f"{decoded.outputs} is missing: leave out --norun to make it")
        checkpoint = output_dir / checkpoints.file_name(_steps(output_dir))
        if average:
            self.command("t2t-avg-all", {"output_dir": output_dir, "skip_scoring": True})
            checkpoint = output_dir / checkpoints.AVERAGED / checkpoint.name
        decoded.outputs.parent.mkdir(exist_ok=True)
        self.command(
            "t2t-decoder",
            {
                "output_dir": output_dir,
                "data_dir": self.data_dir,
                "checkpoint": checkpoint,
                "dataset_split": split,
                "decode_to_file": decoded.outputs,
                "log_examples": 0,
                "decode_hparams": f"beam_size={beam_size}" if beam_size else None,
            },
        )
        return decoded


@dataclass(frozen=True)
class Decoded:
    """A model's outputs for a split, and its references."""

    outputs: Path
    references: Path
    split: str

    @property
    def exist(self) -> bool:
        """True if both files exist."""
        return self.outputs.exists() and self.references.exists()

    def lines(self) -> tuple[list[str], list[str]]:
        """Returns outputs and references."""
        outputs, references = self.outputs.read_bytes(), self.references.read_bytes()
        return text_lines(outputs, str(self.outputs)), text_lines(references, str(self.references))


def dev_perplexity(output_dir: Path) -> float:
    """Returns a training's last perplexity per subword of the dev split."""
    return _evaluations(output_dir)[-1]["perplexity"]


def _steps(output_dir: Path) -> int:
    """Returns the step of the newest checkpoint or evaluation, 0 without either."""
    steps = [float(checkpoint.step) for checkpoint in checkpoints.list_checkpoints(output_dir)]
    return int(max([*steps, *(row["step"] for row in _evaluations(output_dir))], default=0))


def _decoded(output_dir: Path, split: str, average: bool, beam_size: int | None = None) -> Decoded:
    parts = [split, Path(checkpoints.file_name(_steps(output_dir))).stem, *(["average"] if average else [])]
    stem = output_dir / "decoded" / "-".join([*parts, *([f"beam{beam_size}"] if beam_size else [])])
    return Decoded(Path(f"{stem}.outputs"), Path(f"{stem}.targets"), split)


def _is_complete(output_dir: Path, steps: int) -> bool:
    """Returns whether a training has made its last update and evaluated it."""
    return any(row["step"] >= steps for row in _evaluations(output_dir))


def _evaluations(output_dir: Path) -> list[dict[str, float]]:
    """Returns the trainer's evaluations that have a perplexity, oldest first."""
    return [row for row in curve_files.read_curve(output_dir, curve_files.DEV) if "perplexity" in row]
