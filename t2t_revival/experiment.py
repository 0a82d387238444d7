"""A whole training of a problem, as `t2t-trainer` runs it: data, model, dev scores, output_dir."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from t2t_revival.data.metadata import dropped
from t2t_revival.data.vocabularies import TextEncoder
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.parsing.word_marks import word_marks
from t2t_revival.problems.problem import DEV, TRAIN, Text2TextProblem
from t2t_revival.split_scores import SplitScores
from t2t_revival.training import curve_files
from t2t_revival.training.checkpoints import file_name
from t2t_revival.training.distribution import make_strategy
from t2t_revival.training.evaluations import settings_fingerprint
from t2t_revival.training.lock import only_trainer
from t2t_revival.training.loop import Result, Training
from t2t_revival.training.news import Note, Report
from t2t_revival.training.run import FILE_NAME, Run, check_place, check_same, plan_run, save_run
from t2t_revival.training.settings import Settings
from t2t_revival.training.state import Fingerprints
from t2t_revival.training.workers import Workers


@dataclass(frozen=True)
class Experiment:
    """A problem, what to learn it with, and where.

    Attributes:
        problem: what is learned.
        hparams: what it is learned with.
        hparams_set: the name of the set that `hparams` started from.
        data_dir: where the problem's data is.
        settings: how the training runs; its output_dir is where everything goes.
        decoded_sentences: dev sentences that an evaluation decodes; 0: none.

    Example:
        problem = registry.problem("translate_ende", data_source="sample")
        problem.generate_data("data")
        Experiment(problem, registry.hparams("tiny"), "tiny", Path("data"), Settings(Path("out"))).run()
        print(Translator.load("out").translate(["The old dog sleeps."]))
    """

    problem: Text2TextProblem
    hparams: HParams
    hparams_set: str
    data_dir: Path
    settings: Settings
    decoded_sentences: int = 200

    def run(self, report: Report | None = None) -> Result:
        """Trains, going on where an earlier run in the same output_dir stopped.

        Args:
            report: is told the news; see `Training`. Of several workers, the chief's.

        Raises:
            T2TError: there is no data; output_dir holds another run, or another trainer works there; and as
                `Training`.
        """
        strategy = make_strategy(self.settings.strategy)
        chief = Workers(strategy).chief
        hparams = self.problem.hparams(self.hparams)
        vocabulary = self.problem.vocabulary(self.data_dir)
        marks = word_marks(vocabulary.pieces) if hparams.deterministic_attention else None
        shards = self.problem.shards(TRAIN, self.data_dir)
        output_dir = self.settings.output_dir
        if chief:  # which may have the lock already where another worker looks
            check_place(output_dir, self.problem.name, self.hparams_set)
        run = plan_run(self.problem, self.hparams_set, self.data_dir, output_dir)
        fingerprints = self._fingerprints(run)
        with only_trainer(output_dir) if chief else nullcontext():
            check_same(output_dir, run, hparams)
            report = report if chief else None
            evaluate = self._scores(hparams, vocabulary, run) if chief else None
            training = Training(
                shards,
                hparams,
                vocabulary.size,
                self.settings,
                evaluate,
                report,
                marks,
                strategy,
                fingerprints,
            )
            if chief:
                for note in self._notes(training, run, hparams, fingerprints):
                    if report:
                        report(Note(note))
                save_run(output_dir, run, hparams, vocabulary.path)
            return training.run()

    def _fingerprints(self, run: Run) -> Fingerprints:
        decoding = settings_fingerprint(
            decode_hparams=run.decode_hparams, decoded_sentences=self.decoded_sentences
        )
        return Fingerprints(
            self.problem.data_fingerprint(TRAIN, self.data_dir),
            self.problem.data_fingerprint(DEV, self.data_dir),
            decoding if self.decoded_sentences else "",
        )

    def _scores(self, hparams: HParams, vocabulary: TextEncoder, run: Run) -> SplitScores:
        return SplitScores(
            self.problem,
            DEV,
            self.data_dir,
            hparams,
            vocabulary,
            DecodeHParams.parse("", run.decode_hparams),
            self.decoded_sentences,
            self.settings.streams,
        )

    def _notes(self, training: Training, run: Run, hparams: HParams, fingerprints: Fingerprints) -> list[str]:
        """Lines on what would go unnoticed; evaluations of earlier versions get their labels."""
        notes = []
        if training.start.step:
            notes.append(f"resuming from {file_name(training.start.step)} (step {training.start.step})")
        if (self.settings.output_dir / FILE_NAME).exists():
            notes += self._changes(training, run, hparams, fingerprints)
        counts = self.problem.metadata(self.data_dir).splits[TRAIN]
        if too_long := dropped(counts, hparams.max_length):
            notes.append(
                f"{too_long:,} of {counts.examples:,} training pairs are longer than "
                f"max_length={hparams.max_length} tokens and left out"
            )
        return [*notes, training.note] if training.note else notes

    def _changes(
        self, training: Training, run: Run, hparams: HParams, fingerprints: Fingerprints
    ) -> list[str]:
        """Lines on what is not as it was when the run in output_dir was last started."""
        output_dir = self.settings.output_dir
        stored_dir = Run.load(output_dir).data_dir
        notes = changed_hparams(HParams.load(output_dir), hparams)
        notes += _data_change(training, stored_dir, run.data_dir, fingerprints)
        notes += _label_curves(output_dir, fingerprints, stored_dir, run.data_dir)
        evaluations = curve_files.read_segments(output_dir, curve_files.DEV, "loss")
        if evaluations and evaluations[-1].measured_on != fingerprints.dev:
            notes.append("dev data has changed: earlier scores in dev.csv are not compared with later ones")
        return notes


def changed_hparams(before: HParams | None, now: HParams) -> list[str]:
    """A line "NAME: OLD -> NEW" for each hyperparameter that differs from the stored ones."""
    if before is None:
        return []
    pairs = ((name, getattr(before, name), value) for name, value in dataclasses.asdict(now).items())
    return [f"{name}: {_plain(old)} -> {_plain(value)}" for name, old, value in pairs if old != value]


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _data_change(training: Training, before: str, now: str, fingerprints: Fingerprints) -> list[str]:
    """A line where the training data, or only its folder, is another one than before."""
    old, new = training.start.data, fingerprints.train
    if not training.start.step or not before:  # nothing learned yet, or an imported model
        return []
    if training.has_other_data:
        what = f"{before} -> {now}" if before != now else f"the content of {now} has changed, {old} -> {new}"
        return [f"data: {what}; training begins at its first batch"]
    if before != now:
        return [f"data: {before} -> {now}" + (", the same training data" if old == new else "")]
    return []


def _label_curves(output_dir: Path, fingerprints: Fingerprints, before: str, now: str) -> list[str]:
    """Labels the rows of earlier versions, which do not say what they were measured on.

    Where the data_dir is the same they are taken as measured on its data, else they are compared with none.

    Returns:
        A line where there were such evaluations.

    Raises:
        T2TError: a file cannot be written.
    """
    counts = {}
    for curve in (curve_files.TRAIN, curve_files.DEV):
        labels = fingerprints.labels(curve)
        path = curve_files.csv_path(output_dir, curve)
        try:
            counts[curve] = curve_files.label_rows(
                path, labels if before == now else dict.fromkeys(labels, curve_files.UNKNOWN)
            )
        except OSError as error:
            raise T2TError(f"cannot write {path}: {error.strerror or error}") from error
    if not counts[curve_files.DEV]:
        return []
    taken = f"taken as of {now}" if before == now else "not compared with later ones"
    return [f"dev.csv: {counts[curve_files.DEV]} evaluations do not name their data: {taken}"]
