"""Scores of a model on a split of its problem's data, as a training and `t2t-eval` measure them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from t2t_revival.data.batching import evaluation_batches
from t2t_revival.data.vocabularies import TextEncoder
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.translator import Cut, Translator
from t2t_revival.evaluation.decoded import measure_of
from t2t_revival.evaluation.perplexity import TeacherForced
from t2t_revival.hparams import HParams
from t2t_revival.problems.problem import Text2TextProblem
from t2t_revival.training.checkpoints import restore_weights
from t2t_revival.training.news import Scores
from t2t_revival.training.run import Run, load_hparams, load_vocabulary


class SplitScores:
    """Loss, perplexity and accuracy of a model, and BLEU or F1 of what it decodes (`Problem.eval_metrics`).

    The split is read once. What depends on the model is made when it is first seen: later calls are of the
    same model, whose weights may have changed.

    Args:
        problem: what the model has learned.
        split: "dev" or "test".
        data_dir: where the problem's data is.
        hparams: the model's.
        vocabulary: the model's.
        options: how to decode.
        decoded_sentences: at most so many, evenly spread over the split; 0: none.
        streams: batches that are computed side by side.

    Raises:
        T2TError: there is no such split, or it is damaged.
    """

    def __init__(
        self,
        problem: Text2TextProblem,
        split: str,
        data_dir: Path,
        hparams: HParams,
        vocabulary: TextEncoder,
        options: DecodeHParams,
        decoded_sentences: int,
        streams: int = 1,
    ) -> None:
        self._problem, self._vocabulary, self._options = problem, vocabulary, options
        self._max_length, self._streams = hparams.max_length, streams
        self._batches = evaluation_batches(problem.shards(split, data_dir), hparams).cache()
        self._pairs = sample(problem, split, data_dir, decoded_sentences)
        self._tools: tuple[TeacherForced, Translator] | None = None

    def __call__(self, model: Any) -> Scores:
        """The scores by name; BLEU and F1 go from 0 to 100."""
        return self.with_outputs(model)[0]

    def with_outputs(self, model: Any) -> tuple[Scores, list[str]]:
        """The scores by name, and what was decoded for BLEU or F1, in the order of `sample`."""
        if self._tools is None:
            translator = Translator(
                model, self._vocabulary, self._options, self._max_length, self._streams, problem=self._problem
            )
            self._tools = TeacherForced(model, self._streams), translator
        teacher_forced, translator = self._tools
        scores = teacher_forced(self._batches)
        measure = measure_of(self._problem)
        if not (self._pairs and measure):
            return scores, []
        found = translator.nbest([inputs for inputs, _ in self._pairs], 1, on_cut=_ignore, prepared=True)
        outputs = [outputs[0].text for outputs in found]
        scores[measure.metric] = measure.score(outputs, [target for _, target in self._pairs]).score
        return scores, outputs


class CheckpointScores:
    """`SplitScores` of the checkpoints of one training, in float32.

    Args:
        output_dir: of the training.
        problem: what was learned there.
        split: "dev" or "test".
        data_dir: where the problem's data is.
        decoded_sentences: see `SplitScores`.
        streams: see `SplitScores`.

    Raises:
        T2TError: as `SplitScores`; there is no trained model in output_dir.
    """

    def __init__(
        self,
        output_dir: Path,
        problem: Text2TextProblem,
        split: str,
        data_dir: Path,
        decoded_sentences: int,
        streams: int = 1,
    ) -> None:
        from t2t_revival.model import Transformer

        options = DecodeHParams.parse("", Run.load(output_dir).decode_hparams)
        hparams, vocabulary = load_hparams(output_dir), load_vocabulary(output_dir)
        self._scores = SplitScores(
            problem, split, data_dir, hparams, vocabulary, options, decoded_sentences, streams
        )
        self._model = Transformer(hparams, vocabulary.size)

    def __call__(self, path: Path) -> tuple[Scores, list[str]]:
        """The scores of a checkpoint, and its outputs; see `SplitScores.with_outputs`.

        Raises:
            T2TError: it is of another model, or gone.
            DamagedError: it is damaged.
        """
        restore_weights(self._model, path)
        return self._scores.with_outputs(self._model)


def sample(problem: Text2TextProblem, split: str, data_dir: Path, most: int) -> list[tuple[str, str]]:
    """At most `most` pairs of a split, evenly spread over it."""
    if most < 1:
        return []
    pairs = list(problem.references(split, data_dir))
    return pairs[:: max(1, -(-len(pairs) // most))]


def _ignore(cut: Cut) -> None:
    """A sentence that is too long is cut in silence: it is at every evaluation the same."""
