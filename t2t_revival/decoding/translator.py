"""`Translator`: text in, text out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np
import tensorflow as tf

from t2t_revival import registry
from t2t_revival.data.vocabulary import EOS, PAD, until_eos
from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.tree_constraint import TreeConstraint
from t2t_revival.errors import T2TError
from t2t_revival.training.checkpoints import Checkpoint, OnDamaged, restore_weights, to_decode
from t2t_revival.training.run import Run, load_hparams, load_vocabulary

if TYPE_CHECKING:
    from t2t_revival.data.vocabularies import TextEncoder
    from t2t_revival.model import Transformer
    from t2t_revival.problems.problem import Text2TextProblem

LEAST_TOKENS = 16  # that a sentence counts in a batch, so that short ones do not make a batch of thousands
LEAST_BATCH = 256  # input tokens below which a batch is not made smaller to keep all streams busy
WIDE = 64  # beam_size^2 from which batches are smaller, since each hypothesis looks at the keys of all
LINE_ENDS = str.maketrans("\n\r", "  ")


@dataclass(frozen=True)
class Translation:
    """One output.

    Attributes:
        text: without a line end.
        score: log-probability / length penalty; that of an empty input's output is 0.
        repaired: whether the model gave something else than the problem asks for, such as half a tree.
    """

    text: str
    score: float
    repaired: bool = False


@dataclass(frozen=True)
class Cut:
    """An input that was too long: line `number` (from 1) has `tokens`, of which `kept` were decoded."""

    number: int
    tokens: int
    kept: int

    def __str__(self) -> str:
        return f"line {self.number}: {self.tokens} tokens, cut to the first {self.kept} (hparams: max_length)"


@dataclass(frozen=True)
class Progress:
    """How far decoding is: sentences done of `total`, and their share of all input tokens."""

    done: int
    total: int
    share: float


class Translator:
    """A model with its vocabulary: lines in, one line out for each, always.

    Args:
        model: weights may change between calls, unless `frozen`.
        vocabulary: of source and target.
        options: how to decode.
        max_length: tokens of an input, EOS included; what is longer is cut. None: the model's.
        streams: how many batches are decoded side by side.
        frozen: see `BeamSearch`.
        problem: makes the model's inputs from lines, and outputs from what the model gives; None: both are
            as they are.

    Attributes:
        checkpoint: what `load` took the weights from.

    Raises:
        T2TError: the options ask for trees, and the vocabulary has none.

    Example:
        translator = Translator.load("~/t2t_train/translate_ende/base")
        translator.translate(["The dog sleeps.", ""])    # ["Der Hund schläft.", ""]
        translator.nbest(["The dog sleeps."], n=2)       # [[Translation(text=..., score=-0.3), ...]]
    """

    def __init__(
        self,
        model: Transformer,
        vocabulary: TextEncoder,
        options: DecodeHParams | None = None,
        max_length: int | None = None,
        streams: int = 1,
        frozen: bool = False,
        problem: Text2TextProblem | None = None,
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.problem = problem
        self.options = options or DecodeHParams()
        self.max_length = max_length or model.hparams.max_length
        self.streams = streams
        self.checkpoint: Checkpoint | None = None
        self.constraint = TreeConstraint(vocabulary.pieces) if self.options.constrained else None
        self._search = BeamSearch(model, frozen=frozen, constraint=self.constraint)

    @classmethod
    def load(
        cls,
        output_dir: str | Path,
        checkpoint_path: str | None = None,
        decode_hparams: str = "",
        streams: int = 1,
        precision: str = "float32",
        frozen: bool = True,
        on_damaged: OnDamaged | None = None,
    ) -> Translator:
        """The model that a training left in `output_dir`, in a precision of its own, however it was trained.

        Args:
            output_dir: of the training.
            checkpoint_path: a checkpoint's file; None: the newest whole one, its average where there is one.
            decode_hparams: changes to the problem's own, as in "beam_size=8,alpha=0.6".
            streams: see `Translator`.
            precision: a Keras dtype policy: "float32", or "bfloat16", which is faster where a CPU has
                instructions for it and changes a few words.
            frozen: whether the model's weights stay as they are loaded; see `BeamSearch`.
            on_damaged: is told of damaged checkpoints that are left out; None: `warnings.warn`.

        Raises:
            T2TError: there is no trained model, it is damaged, or `decode_hparams` is wrong.
        """
        from t2t_revival.model import Transformer
        from t2t_revival.model.building import precision_policy

        folder = Path(output_dir).expanduser()
        run = Run.load(folder)
        options = DecodeHParams.parse(decode_hparams, run.decode_hparams)
        hparams, vocabulary = load_hparams(folder), load_vocabulary(folder)
        checkpoint = to_decode(folder, checkpoint_path, on_damaged)
        with precision_policy(precision):
            model = Transformer(hparams, vocabulary.size)
        restore_weights(model, checkpoint.path)
        problem = _problem(run.problem, options)
        frozen = frozen and precision == "float32"
        translator = cls(model, vocabulary, options, streams=streams, frozen=frozen, problem=problem)
        translator.checkpoint = checkpoint
        return translator

    def take(self, checkpoint: Checkpoint) -> None:
        """Goes on with the weights of another checkpoint of the same training; not for a `frozen` one.

        Raises:
            T2TError: it is damaged, or of another model.
        """
        restore_weights(self.model, checkpoint.path)
        self.checkpoint = checkpoint

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, lines: str, on_cut: Callable[[Cut], None] | None = None
    ) -> str: ...

    @overload
    def translate(self, lines: Iterable[str], on_cut: Callable[[Cut], None] | None = None) -> list[str]: ...

    def translate(
        self, lines: str | Iterable[str], on_cut: Callable[[Cut], None] | None = None
    ) -> str | list[str]:
        """The best output of each line; of one string, a string. See `nbest`."""
        if isinstance(lines, str):
            return self.translate([lines], on_cut)[0]
        return [outputs[0].text for outputs in self.nbest(lines, n=1, on_cut=on_cut)]

    def nbest(
        self,
        lines: Iterable[str],
        n: int | None = None,
        on_cut: Callable[[Cut], None] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        prepared: bool = False,
    ) -> list[list[Translation]]:
        """The best outputs of each line, best first.

        Lines are decoded sorted by length, in batches filled with `options.batch_size` input tokens, and come
        back in their order. A line without content gives one empty output. No output has a line end in it.

        Args:
            lines: source text; a line end inside a line counts as a space.
            n: outputs per line, at most `options.beam_size`; None: as the options say. A line has fewer if
                the search finishes fewer.
            on_cut: is told of lines that are too long; None: `warnings.warn`.
            on_progress: is told after each batch.
            prepared: whether lines are the model's inputs already, as those of a split are.

        Raises:
            T2TError: a line holds what is no character, or n does not fit.
        """
        n = self.options.outputs if n is None else n
        if not 1 <= n <= self.options.beam_size:
            raise T2TError(f"n={n} outputs: must be between 1 and beam_size={self.options.beam_size}")
        texts = [line.translate(LINE_ENDS) for line in lines]
        if self.problem and not prepared:
            texts = [self.problem.prepare(text, self.options.tokenized) for text in texts]
        encoded = self._encode(texts, on_cut or _warn)
        results = [[Translation("", 0.0)] for _ in texts]
        wanted = [index for index, text in enumerate(texts) if text.strip()]
        tokens = sum(len(encoded[index]) for index in wanted)
        share = max(tokens // self.streams, LEAST_BATCH)
        wide = max(self.options.beam_size**2 // WIDE, 1)
        batches = list(_batches(wanted, encoded, min(self.options.batch_size // wide, share)))
        done, left = len(texts) - len(wanted), tokens
        for batch, outputs in self._decode(batches, encoded, n):
            for index, translations in zip(batch, outputs, strict=True):
                results[index] = [self._finished(texts[index], output) for output in translations]
            done, left = done + len(batch), left - sum(len(encoded[index]) for index in batch)
            if on_progress:
                on_progress(Progress(done, len(texts), 1 - left / tokens))
        return results

    def encode(self, line: str, prepared: bool = False) -> list[int]:
        """The ids of one line as the model gets it, with EOS, however many.

        Args:
            line: a line end in it counts as a space.
            prepared: whether it is in the model's words already, as an output is.

        Raises:
            T2TError: it holds what is no character.
        """
        text = line.translate(LINE_ENDS)
        if self.problem and not prepared:
            text = self.problem.prepare(text, self.options.tokenized)
        _check_characters([text])
        return [*self.vocabulary.encode(text), EOS]

    def best_ids(self, source: list[int]) -> list[int]:
        """The best output of one input, ids with EOS: the very pieces that were chosen.

        An output that was cut at `extra_length` has no EOS; where none is found (weights that are NaN), it is
        empty.
        """
        options = self.options
        found, scores = self._search([source], options.beam_size, options.alpha, options.extra_length)
        ids = found.numpy()[0, 0].tolist() if scores.numpy()[0, 0] > -np.inf else []
        return ids[: ids.index(EOS) + 1] if EOS in ids else until_eos(ids)

    def _encode(self, texts: list[str], on_cut: Callable[[Cut], None]) -> list[list[int]]:
        """Ids of each text with EOS, cut to `max_length`."""
        _check_characters(texts)
        encoded = [[*ids, EOS] for ids in self.vocabulary.encode_batch(texts)]
        for index, ids in enumerate(encoded):
            if len(ids) > self.max_length:
                on_cut(Cut(index + 1, len(ids), self.max_length))
                encoded[index] = [*ids[: self.max_length - 1], EOS]
        return encoded

    def _decode(
        self, batches: list[list[int]], encoded: list[list[int]], n: int
    ) -> Iterator[tuple[list[int], list[list[Translation]]]]:
        """Each batch with its outputs, as they get ready."""

        def decode(batch: list[int]) -> tuple[list[int], list[list[Translation]]]:
            return batch, self._decode_batch([encoded[index] for index in batch], n)

        if self.streams == 1:
            yield from map(decode, batches)
            return
        with ThreadPoolExecutor(self.streams) as pool:
            waiting = iter(batches)
            running: set[Future] = {pool.submit(decode, batch) for batch in islice(waiting, self.streams)}
            while running:
                ready, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(decode, batch) for batch in islice(waiting, len(ready))}
                yield from (future.result() for future in ready)

    def _decode_batch(self, sources: list[list[int]], n: int) -> list[list[Translation]]:
        rows = np.full((len(sources), max(map(len, sources))), PAD, np.int32)
        for row, source in zip(rows, sources, strict=True):
            row[: len(source)] = source
        options = self.options
        try:
            ids, scores = self._search(rows, options.beam_size, options.alpha, options.extra_length, n)
            found = zip(ids.numpy().tolist(), scores.numpy().tolist(), strict=True)
        except tf.errors.ResourceExhaustedError as error:
            raise T2TError(
                f"out of memory: lower batch_size (it is {options.batch_size} tokens) or beam_size "
                f"({options.beam_size}) in --decode_hparams"
            ) from error
        return [self._translations(outputs, values) for outputs, values in found]

    def _translations(self, outputs: list[list[int]], scores: list[float]) -> list[Translation]:
        """The outputs that were found; an empty one of score -inf if none was (weights that are NaN)."""
        found = [
            Translation(self.vocabulary.decode(ids).translate(LINE_ENDS), score)
            for ids, score in zip(outputs, scores, strict=True)
            if score > -np.inf
        ]
        return found or [Translation("", -np.inf)]

    def _finished(self, inputs: str, output: Translation) -> Translation:
        if self.problem is None:
            return output
        text, repaired = self.problem.finish(inputs, output.text)
        return Translation(text, output.score, repaired)


def _problem(name: str, options: DecodeHParams) -> Text2TextProblem | None:
    """The problem of a run; None for one of a user's package that is not imported."""
    from t2t_revival.problems.problem import Text2TextProblem

    if name in registry.list_problems():
        problem = registry.problem(name)
        return problem if isinstance(problem, Text2TextProblem) else None
    if options.constrained:
        raise T2TError(f"problem {name}, which makes trees of outputs, is not known: give --t2t_usr_dir")
    return None


def _batches(wanted: list[int], encoded: list[list[int]], batch_size: int) -> Iterator[list[int]]:
    """Indices of inputs, longest first, in groups of `batch_size` tokens with the padding."""
    batch: list[int] = []
    for index in sorted(wanted, key=lambda index: -len(encoded[index])):
        width = max(len(encoded[batch[0] if batch else index]), LEAST_TOKENS)
        if batch and (len(batch) + 1) * width > batch_size:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _check_characters(texts: list[str]) -> None:
    for number, text in enumerate(texts, start=1):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise T2TError(f"line {number}: a lone surrogate is no character: {error.reason}") from error


def _warn(cut: Cut) -> None:
    warnings.warn(str(cut), stacklevel=4)
