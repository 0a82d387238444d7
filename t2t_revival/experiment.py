"""A whole training of a problem, as `t2t-trainer` runs it: data, model, dev scores, output_dir."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from t2t_revival.data.metadata import dropped
from t2t_revival.data.vocabularies import TextEncoder
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.hparams import HParams
from t2t_revival.parsing.word_marks import word_marks
from t2t_revival.problems.problem import DEV, TRAIN, Text2TextProblem
from t2t_revival.split_scores import SplitScores
from t2t_revival.training.distribution import make_strategy
from t2t_revival.training.lock import only_trainer
from t2t_revival.training.loop import Result, Training
from t2t_revival.training.news import Note, Report
from t2t_revival.training.run import Run, check_place, check_same, save_run
from t2t_revival.training.settings import Settings
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
        run = Run(
            problem=self.problem.name,
            hparams_set=self.hparams_set,
            data_dir=str(self.data_dir.resolve()),
            vocabulary=vocabulary.path.name,
            fingerprint=vocabulary.fingerprint,
            decode_hparams=self.problem.decode_hparams(),
        )
        output_dir = self.settings.output_dir
        if chief:  # which may have the lock already where another worker looks
            check_place(output_dir, run.problem, run.hparams_set)
        with only_trainer(output_dir) if chief else nullcontext():
            check_same(output_dir, run, hparams)
            report = report if chief else None
            evaluate = self._scores(hparams, vocabulary) if chief else None
            training = Training(
                shards, hparams, vocabulary.size, self.settings, evaluate, report, marks, strategy
            )
            self._tell_start(training, hparams, report)
            if chief:
                save_run(output_dir, run, hparams, vocabulary.path)
            return training.run()

    def _scores(self, hparams: HParams, vocabulary: TextEncoder) -> SplitScores:
        return SplitScores(
            self.problem,
            DEV,
            self.data_dir,
            hparams,
            vocabulary,
            DecodeHParams.from_problem(self.problem),
            self.decoded_sentences,
            self.settings.streams,
        )

    def _tell_start(self, training: Training, hparams: HParams, report: Report | None) -> None:
        """Reports what else would go unnoticed: pairs that are too long, data that comes again."""
        if report is None:
            return
        counts = self.problem.metadata(self.data_dir).splits[TRAIN]
        if too_long := dropped(counts, hparams.max_length):
            report(
                Note(
                    f"{too_long:,} of {counts.examples:,} training pairs are longer than "
                    f"max_length={hparams.max_length} tokens and left out"
                )
            )
        if training.note:
            report(Note(training.note))
