"""Scores of a model on a split of its problem's data, as a training and `t2t-eval` measure them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
from keras import ops

from t2t_revival.checkpoints.directory import restore_weights
from t2t_revival.curve_files import Scores
from t2t_revival.data.batching import Element, evaluation_batches
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.decoding.engine import EngineConfig
from t2t_revival.decoding.lines.batching import map_parallel
from t2t_revival.decoding.options import JAX, DecodeHParams
from t2t_revival.decoding.translator import Translator
from t2t_revival.evaluation.decoded import language_of, main_metric, score_outputs
from t2t_revival.hparams import HParams
from t2t_revival.hparams.variants import PACKED
from t2t_revival.metrics.metric import metric_of
from t2t_revival.model import Transformer
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import Data
from t2t_revival.utils.jax_program import JaxProgram

MANY = 500  # sentences: decoding all as if they were as long as the longest takes longer than compiling more


def perplexity(loss: float) -> float:
    """Returns the exponential of a mean loss in nats."""
    return math.exp(min(loss, 700.0))


class TeacherForced:
    """Loss, perplexity (table 3's "PPL (dev)") and accuracy per subword, teacher-forced.

    Args:
        model: returns logits [batch, target, vocab]; its weights may change between calls.
        num_parallel_batches: number of batches that TensorFlow computes side by side.
    """

    def __init__(self, model: Any, num_parallel_batches: int = 1) -> None:
        self._num_parallel_batches = num_parallel_batches
        self._sums: Callable[..., Any]
        if keras.backend.backend() != JAX:
            import tensorflow as tf

            sums = partial(_sums, model, tf.argmax)  # Keras's is slow
            # Without AutoGraph, whose parser fails, with a warning, where threads trace at the same time.
            self._sums = tf.function(sums, reduce_retracing=True, autograph=False)
        else:
            self._num_parallel_batches = 1
            self._sums = JaxProgram(model, partial(_sums, model, ops.argmax), num_arrays=1)

    def __call__(self, batches: Sequence[Element]) -> dict[str, float]:
        """Computes scores of the batches' non-pad target tokens, without label smoothing.

        Args:
            batches: as `evaluation_batches` returns them; on JAX, those of fixed shapes.

        Returns:
            "loss", the mean negative log-probability in nats; "perplexity", its exponential; "accuracy",
            the share of tokens that the model found most likely.
        """
        log_loss = correct = tokens = 0.0
        for sums in map_parallel(self._sums, iter(batches), self._num_parallel_batches):
            log_loss, correct, tokens = (
                total + float(part) for total, part in zip((log_loss, correct, tokens), sums, strict=True)
            )
        loss, accuracy = log_loss / max(tokens, 1.0), correct / max(tokens, 1.0)
        return {"loss": loss, "perplexity": perplexity(loss), "accuracy": accuracy}


class SplitScores:
    """Loss, perplexity and accuracy of a model, and scores such as BLEU or F1 of what it decodes.

    The split is read once, and graphs are traced for the model of the first call: all later calls must be of
    the same model, whose weights may have changed. At most `decoded_sentences`, evenly spread over the split
    ("dev" or "test"), are decoded, 0 for none; `num_parallel_batches` are computed side by side.

    Corpora of a mixture are measured one by one, with `decoded_sentences` each. Scores are the means over
    them, of equal weight, and "loss/CORPUS" and "bleu/CORPUS" those of each.

    Raises:
        T2TError: there is no such split, or it is corrupt.
    """

    def __init__(
        self,
        data: Data,
        split: str,
        hparams: HParams,
        vocabularies: Vocabularies,
        options: DecodeHParams,
        decoded_sentences: int,
        num_parallel_batches: int = 1,
    ) -> None:
        self._problem, self._vocabularies, self._options = data.problem, vocabularies, options
        self._max_length, self._num_parallel_batches = hparams.max_length, num_parallel_batches
        on_jax = keras.backend.backend() == JAX
        shapes = {"fixed_shapes": on_jax, "packed": on_jax and not hparams.not_held_by(PACKED)}
        self._corpora = {
            name: (
                language_of(corpus),
                evaluation_batches(corpus.split(split), hparams, **shapes),
                sample(corpus, split, decoded_sentences),
            )
            for name, corpus in data.corpora(split).items()
        }
        self._scorers: tuple[TeacherForced, Translator] | None = None

    def __call__(self, model: Any) -> Scores:
        """Computes the scores by name; those of outputs, such as BLEU, range from 0 to 100."""
        return self.with_outputs(model)[0]

    def with_outputs(self, model: Any, decoder: Translator | None = None) -> tuple[Scores, list[str]]:
        """Computes the scores by name; also returns the decoded outputs, in the order of `sample`.

        `decoder` has the model's weights on another engine, or in another precision; `None` decodes with the
        model.
        """
        if self._scorers is None:
            parallel = self._num_parallel_batches
            translator = Translator(
                model,
                self._vocabularies.inputs,
                self._options,
                self._max_length,
                EngineConfig(parallel=parallel, constant_weights=False, longest_source=self._longest()),
                problem=self._problem,
                target_vocabulary=self._vocabularies.targets,
            )
            self._scorers = TeacherForced(model, parallel), translator
        teacher_forced, translator = self._scorers
        scores: dict[str, Scores] = {}
        all_outputs: list[str] = []
        for name, (language, batches, pairs) in self._corpora.items():
            scores[name] = teacher_forced(batches)
            if not (pairs and main_metric(self._problem)):
                continue
            inputs = [source for source, _ in pairs]  # of which the same ones are cut in every evaluation
            nbest = (decoder or translator).nbest(inputs, 1, lambda _: None, preprocessed=True)
            outputs = [best[0].text for best in nbest]
            references = [target for _, target in pairs]
            results = score_outputs(self._problem, outputs, references, language)
            scores[name] |= {metric: result.score for metric, result in results.items()}
            all_outputs += outputs
        return _mean(scores), all_outputs

    def _longest(self) -> int:
        """Returns the tokens of the longest input that is decoded; 0 where there are many."""
        inputs = [source for *_, pairs in self._corpora.values() for source, _ in pairs]
        lengths = (len(self._vocabularies.inputs.encode(source)) + 1 for source in inputs)
        return min(self._max_length, max(lengths, default=0)) if len(inputs) <= MANY else 0


class CheckpointScores:
    """`SplitScores` of the checkpoints of the training in `folder`, in float32; arguments as there.

    `load_decoder` loads a checkpoint's file on another engine, or in another precision, which then decodes;
    `None` decodes with the model itself in float32.

    Raises:
        T2TError: as `SplitScores`; there is no trained model in the folder.
    """

    def __init__(
        self,
        folder: ModelFolder,
        data: Data,
        split: str,
        decoded_sentences: int,
        num_parallel_batches: int = 1,
        load_decoder: Callable[[str], Translator] | None = None,
    ) -> None:
        self._load_decoder = load_decoder
        options = DecodeHParams.parse("", folder.run.decode_hparams)
        hparams, vocabularies = folder.hparams, folder.vocabularies
        self._scores = SplitScores(
            data, split, hparams, vocabularies, options, decoded_sentences, num_parallel_batches
        )
        target_size = vocabularies.target_size
        self._model = Transformer(hparams, vocabularies.inputs.size, target_vocab_size=target_size)

    def __call__(self, path: Path) -> tuple[Scores, list[str]]:
        """Computes the scores of a checkpoint, and its outputs, as `SplitScores.with_outputs`.

        Raises:
            T2TError: it is of another model.
            CheckpointNotFoundError: it does not exist.
            CorruptCheckpointError: it is corrupt.
        """
        restore_weights(self._model, path)
        decoder = self._load_decoder(str(path)) if self._load_decoder else None
        return self._scores.with_outputs(self._model, decoder)


def sample(data: Data, split: str, count: int) -> list[tuple[str, str]]:
    """Samples at most `count` pairs, evenly spread over a split; of a mixture, as many from each corpus."""
    if count < 1:
        return []
    found = []
    for corpus in data.corpora(split).values():
        pairs = list(corpus.references(split))
        found += pairs[:: max(1, -(-len(pairs) // count))]
    return found


def _mean(scores: dict[str, Scores]) -> Scores:
    """Returns the means of the scores of several corpora, and those that are reported of each."""
    if list(scores) == [""]:
        return scores[""]
    means = {
        name: sum(corpus[name] for corpus in scores.values()) / len(scores)
        for name in next(iter(scores.values()))
    }
    means["perplexity"] = perplexity(means["loss"])
    each = (name for name in means if metric_of(name).of_each_corpus)
    return means | {f"{name}/{corpus}": scores[corpus][name] for name in each for corpus in scores}


def _sums(model: Any, argmax: Callable[..., Any], inputs: dict[str, Any]) -> tuple[Any, ...]:
    """Returns sums over a batch: of negative log-probabilities, of correct tokens, and of all tokens."""
    labels = inputs["targets"]
    logits = ops.cast(model(inputs, training=False), "float32")  # [batch, target, vocab]
    mask = ops.cast(labels > 0, "float32")
    losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)  # [batch, target]
    correct = ops.cast(ops.equal(argmax(logits, axis=-1), labels), "float32")
    return ops.sum(losses * mask), ops.sum(correct * mask), ops.sum(mask)
