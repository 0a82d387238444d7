"""`Translator`: text in, text out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from t2t_revival import registry
from t2t_revival.data.vocabulary import EOS, until_eos
from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.decoding.inputs import (
    LINE_ENDS,
    Cut,
    Progress,
    encode,
    in_batches,
    padded,
    too_little_memory,
)
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.sampling import Sampler
from t2t_revival.decoding.scoring import Score, Scorer
from t2t_revival.decoding.texts import Texts, Translation
from t2t_revival.decoding.tree_constraint import TreeConstraint
from t2t_revival.errors import LineError, T2TError
from t2t_revival.training.checkpoint_file import GoneError
from t2t_revival.training.checkpoints import Checkpoint, OnDamaged, restore_weights, to_decode
from t2t_revival.training.run import Run, load_hparams, load_vocabulary

if TYPE_CHECKING:
    from t2t_revival.data.vocabularies import TextEncoder
    from t2t_revival.model import Transformer
    from t2t_revival.problems.problem import Text2TextProblem

WIDE = 64  # beam_size^2 from which batches are smaller, since each hypothesis looks at the keys of all


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
        self._sampler = Sampler(
            model, self.options.sampling_temp, self.options.sampling_keep_top_k, frozen, self.constraint
        )
        self._scorer = Scorer(model)

    @classmethod
    def load(
        cls,
        output_dir: str | Path,
        checkpoint_path: str | None = None,
        decode_hparams: str | DecodeHParams = "",
        streams: int = 1,
        precision: str = "float32",
        frozen: bool = True,
        on_damaged: OnDamaged | None = None,
    ) -> Translator:
        """The model that a training left in `output_dir`, in a precision of its own, however it was trained.

        Args:
            output_dir: of the training.
            checkpoint_path: a checkpoint's file; None: the newest whole one, its average where there is one.
            decode_hparams: changes to the problem's own, as in "beam_size=8,alpha=0.6"; or all of them.
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
        options = _options(decode_hparams, run)
        hparams, vocabulary = load_hparams(folder), load_vocabulary(folder)
        checkpoint = to_decode(folder, checkpoint_path, on_damaged)
        with precision_policy(precision):
            model = Transformer(hparams, vocabulary.size)
        while True:
            try:
                restore_weights(model, checkpoint.path)
                break
            except GoneError:  # a training has removed it meanwhile, and written another one
                checkpoint = to_decode(folder, checkpoint_path, on_damaged)
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
        prefixes: Sequence[str] | None = None,
        first_line: int = 1,
        known: Mapping[int, list[Translation]] | None = None,
        on_outputs: Callable[[Mapping[int, list[Translation]]], None] | None = None,
    ) -> list[list[Translation]]:
        """The best outputs of each line, best first; or drawn ones, where the options say so.

        Lines are decoded sorted by length within windows of some batches, each filled with
        `options.batch_size` input tokens, and come back in their order. A line without content gives one
        empty output. No output has a line end in it.

        Args:
            lines: source text; a line end inside a line counts as a space.
            n: outputs per line, at most `options.beam_size`; None: as the options say. A line has fewer if
                the search finishes fewer.
            on_cut: is told of lines that are too long; None: `warnings.warn`.
            on_progress: is told after each batch.
            prepared: whether lines are the model's inputs already, as those of a split are.
            prefixes: for each line, the text that its outputs begin with, "" for none; None: there are none.
                What is forced are its tokens as the vocabulary cuts it: in T2T's vocabularies a word ends
                with it; in others, the model may go on inside its last word, but has seldom seen that word
                cut just there.
            first_line: the number of the first line, for what is said of lines and drawn for them.
            known: outputs by index of the line that an earlier call with the same arguments has passed to
                `on_outputs`; the others are decoded in the same batches as then, and come out the same.
            on_outputs: called with the outputs of each batch as it is finished, by index of the line.

        Raises:
            T2TError: a line or prefix holds what is no character, a prefix is too long, has no source or
                is asked of trees, or n does not fit.
        """
        n = self.options.outputs if n is None else n
        if not 1 <= n <= self.options.beam_size:
            raise T2TError(f"n={n} outputs: must be between 1 and beam_size={self.options.beam_size}")
        rows, texts = self._texts(first_line), [line.translate(LINE_ENDS) for line in lines]
        texts = texts if prepared else rows.prepared(texts)
        sources = rows.sources(texts, on_cut or _warn)
        begun = rows.prefixes(texts, prefixes)

        def decode(batch: list[int]) -> list[list[Translation]]:
            asked = [index for index in batch if texts[index].strip()]
            prefix_rows = padded([begun[index] for index in asked]) if begun and asked else None
            numbers = [first_line + index for index in asked]
            found = self._decode([sources[index] for index in asked], numbers, n, prefix_rows)
            outputs = dict(zip(asked, found, strict=True))
            return [
                [self._finished(texts[index], output) for output in outputs[index]]
                if index in outputs
                else [Translation("", 0.0)]
                for index in batch
            ]

        lengths = [len(source) for source in sources]
        size = self.options.batch_size // max(self.options.beam_size**2 // WIDE, 1)
        results = in_batches(decode, lengths, size, self.streams, on_progress, known, on_outputs)
        return [results[index] for index in range(len(texts))]

    def encode(self, line: str, prepared: bool = False) -> list[int]:
        """The ids of one line as the model gets it, with EOS, however many.

        Args:
            line: a line end in it counts as a space.
            prepared: whether it is in the model's words already, as an output is.

        Raises:
            T2TError: it holds what is no character.
        """
        texts = [line.translate(LINE_ENDS)]
        texts = texts if prepared else self._texts().prepared(texts)
        return [*encode(self.vocabulary, texts)[0], EOS]

    def best_ids(self, source: list[int]) -> list[int]:
        """The best output of one input, ids with EOS: the very pieces that were chosen.

        An output that was cut at `extra_length` has no EOS; where none is found (weights that are NaN), it is
        empty.
        """
        options = self.options
        found, scores = self._search([source], options.beam_size, options.alpha, options.extra_length)
        ids = found.numpy()[0, 0].tolist() if scores.numpy()[0, 0] > -np.inf else []
        return ids[: ids.index(EOS) + 1] if EOS in ids else until_eos(ids)

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        on_cut: Callable[[Cut], None] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        first_line: int = 1,
        known: Mapping[int, Score] | None = None,
        on_scores: Callable[[Mapping[int, Score]], None] | None = None,
    ) -> list[Score]:
        """How probable given outputs are, by the model itself: without length penalty or constraint.

        Args:
            pairs: of source text and output, each as `nbest` takes and gives it; line ends count as spaces.
            on_cut: is told of sources that are too long; None: `warnings.warn`.
            on_progress: is told after each batch.
            first_line: the number of the first pair, for what is said of it.
            known: scores by index of the pair, as `known` of `nbest`.
            on_scores: as `on_outputs` of `nbest`.

        Raises:
            T2TError: a pair has no source, holds what is no character, or has a longer output than there can
                be, or one that is not the problem's.
        """
        both = [[text.translate(LINE_ENDS) for text in pair] for pair in pairs]
        rows = self._texts(first_line)
        texts = rows.prepared([source for source, _ in both])
        for number, text in enumerate(texts, start=first_line):
            if not text.strip():
                raise LineError(number, "no source")
        targets = rows.targets([output for _, output in both])
        sources = rows.sources(texts, on_cut or _warn)

        def score(batch: list[int]) -> list[Score]:
            with too_little_memory(self.options):
                sides = [padded([side[index] for index in batch]) for side in (sources, targets)]
                log_probs = self._scorer(*sides).numpy().tolist()
            return [Score(value, len(targets[index])) for index, value in zip(batch, log_probs, strict=True)]

        lengths = [max(map(len, pair)) for pair in zip(sources, targets, strict=True)]
        size = self.options.batch_size
        scores = in_batches(score, lengths, size, self.streams, on_progress, known, on_scores)
        return [scores[index] for index in range(len(both))]

    def _texts(self, first_line: int = 1) -> Texts:
        return Texts(self.vocabulary, self.problem, self.options, self.max_length, first_line)

    def _decode(
        self, sources: list[list[int]], numbers: list[int], n: int, prefixes: np.ndarray | None
    ) -> list[list[Translation]]:
        """The outputs of a batch, which may be empty."""
        if not sources:
            return []
        rows, options = padded(sources), self.options
        with too_little_memory(options):
            if options.samples:
                ids, scores = self._sampler(
                    rows, numbers, options.random_seed, options.alpha, options.extra_length, n, prefixes
                )
            else:
                ids, scores = self._search(
                    rows, options.beam_size, options.alpha, options.extra_length, n, prefixes
                )
            found = zip(ids.numpy().tolist(), scores.numpy().tolist(), strict=True)
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


def _options(decode_hparams: str | DecodeHParams, run: Run) -> DecodeHParams:
    if isinstance(decode_hparams, DecodeHParams):
        return decode_hparams
    options = DecodeHParams.parse(decode_hparams, run.decode_hparams)
    if warning := options.batch_size_warning:
        warnings.warn(warning, stacklevel=3)
    return options


def _problem(name: str, options: DecodeHParams) -> Text2TextProblem | None:
    """The problem of a run; None for one of a user's package that is not imported."""
    from t2t_revival.problems.problem import Text2TextProblem

    if name in registry.list_problems():
        problem = registry.problem(name)
        return problem if isinstance(problem, Text2TextProblem) else None
    if options.constrained:
        raise T2TError(f"problem {name}, which makes trees of outputs, is not known: give --t2t_usr_dir")
    return None


def _warn(cut: Cut) -> None:
    warnings.warn(str(cut), stacklevel=5)
