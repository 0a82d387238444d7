"""A whole training of a problem, as `t2t-trainer` runs it: data, model, dev scores, output_dir."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_revival.data.batching import evaluation_batches
from t2t_revival.data.metadata import dropped
from t2t_revival.data.vocabularies import TextEncoder
from t2t_revival.decoding.inputs import Cut
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.translator import Translator
from t2t_revival.evaluation.decoded import measure_of
from t2t_revival.evaluation.perplexity import TeacherForced
from t2t_revival.hparams import HParams
from t2t_revival.parsing.word_marks import word_marks
from t2t_revival.problems.problem import DEV, TRAIN, Text2TextProblem
from t2t_revival.training.lock import only_trainer
from t2t_revival.training.loop import Result, Training
from t2t_revival.training.run import Run, check_place, check_same, save_run
from t2t_revival.training.session import Note, Report, Scores, Settings


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
            report: is told the news; see `Training`.

        Raises:
            T2TError: there is no data; output_dir holds another run, or another trainer works there; and as
                `Training`.
        """
        hparams = self.problem.hparams(self.hparams)
        vocabulary = self.problem.vocabulary(self.data_dir)
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
        check_place(output_dir, run.problem, run.hparams_set)
        with only_trainer(output_dir):
            check_same(output_dir, run, hparams)
            evaluate = self._evaluator(hparams, vocabulary)
            marks = word_marks(vocabulary.pieces) if hparams.deterministic_attention else None
            training = Training(shards, hparams, vocabulary.size, self.settings, evaluate, report, marks)
            self._tell_start(training, hparams, report)
            save_run(output_dir, run, hparams, vocabulary.path)
            return training.run()

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

    def _evaluator(self, hparams: HParams, vocabulary: TextEncoder) -> Callable[[Any], Scores]:
        """Scores on the dev split. What depends on the model is made when it is first seen."""
        batches = evaluation_batches(self.problem.shards(DEV, self.data_dir), hparams).cache()
        pairs, measure = self._dev_sample(), measure_of(self.problem)
        tools: list[tuple[TeacherForced, Translator]] = []

        def evaluate(model: Any) -> Scores:
            if not tools:
                options = DecodeHParams.from_problem(self.problem)
                streams = self.settings.streams
                translator = Translator(
                    model, vocabulary, options, hparams.max_length, streams, problem=self.problem
                )
                tools.append((TeacherForced(model, streams), translator))
            teacher_forced, translator = tools[0]
            scores = teacher_forced(batches)
            if pairs and measure:
                found = translator.nbest([inputs for inputs, _ in pairs], 1, on_cut=_ignore, prepared=True)
                outputs = [outputs[0].text for outputs in found]
                scores[measure.metric] = measure.score(outputs, [reference for _, reference in pairs]).score
            return scores

        return evaluate

    def _dev_sample(self) -> list[tuple[str, str]]:
        """At most `decoded_sentences` of the dev split, evenly spread over it."""
        if self.decoded_sentences < 1:
            return []
        pairs = list(self.problem.references(DEV, self.data_dir))
        stride = max(1, -(-len(pairs) // self.decoded_sentences))
        return pairs[::stride]


def _ignore(cut: Cut) -> None:
    """A dev sentence that is too long is cut in silence: it is at every evaluation the same."""
