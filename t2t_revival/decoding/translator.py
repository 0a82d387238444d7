"""`Translator`: text in, text out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from t2t_revival.checkpoints.directory import Checkpoint, OnDamaged
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.sentencepiece import EOS, until_eos
from t2t_revival.decoding import engines
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.batching import DecodingProgress, Result, map_batches
from t2t_revival.decoding.constrained_lines import Hypotheses, constrained_lines
from t2t_revival.decoding.coverage import CoveragePenalty
from t2t_revival.decoding.detailer import Detailer
from t2t_revival.decoding.engines import Model
from t2t_revival.decoding.lexical_constraints import constraints_of
from t2t_revival.decoding.loading import load
from t2t_revival.decoding.markup.translation import nbest_with_markup
from t2t_revival.decoding.model_tags import check_tag
from t2t_revival.decoding.options import TENSORFLOW, DecodeHParams
from t2t_revival.decoding.outputs import Score, Translation
from t2t_revival.decoding.paragraphs import translate_paragraphs
from t2t_revival.decoding.postprocessor import Decoded, Postprocessor
from t2t_revival.decoding.preprocessor import LINE_ENDS, Preprocessor, Truncation, check_constrainable, pad
from t2t_revival.decoding.resumable import NO_HEADS, OF_ENSEMBLE, OnNote, ignore_note, unchecked
from t2t_revival.decoding.term_check import TermCheck
from t2t_revival.decoding.translations import Translations
from t2t_revival.errors import LineError, T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils.blank import is_blank
from t2t_revival.utils.files import path_of
from t2t_revival.utils.forks import check_not_forked
from t2t_revival.utils.texts import pairs_of, shown, texts_of

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder
    from t2t_revival.decoding.lexical_constraints import LineConstraints
    from t2t_revival.model import Transformer
    from t2t_revival.problems.problem import Problem


class Translator:
    """A model with its vocabularies: translates lines, one output line for each.

    Args:
        model: its weights may change between calls, unless `constant_weights`; or a `CTranslate2Engine`.
        vocabulary: vocabulary of source and target, or of the source.
        options: how to decode.
        max_length: maximum tokens of an input, EOS included; longer ones are cut. `None` is the model's own.
        num_parallel_batches: number of batches that are decoded at the same time.
        constant_weights: see `BeamSearch`.
        problem: pre- and postprocesses text. `None` leaves it as it is.
        translations: makes shortlists, if the options have one.
        int8: whether TensorFlow computes products in int8, with the weights that a float32 model has now.
        target_vocabulary: the target's own vocabulary. `None` is the source's.
        alignment_heads: align words, if the options ask for that.

    Attributes:
        detailer: computes details of outputs.
        vocabularies: of source and target.
        checkpoint, more_checkpoints: those of the weights; the latter of an ensemble's other models.
        find_heads: returns the heads that align terms, where `alignment_heads` are not given.
        engine: the engine and the precision in which it computes, for people.

    Raises:
        T2TError: trees or shortlists lack their tokens or `translations`, or TensorFlow int8 products.

    Example:
        translator = Translator.load("~/t2t_train/translate_ende/base")
        translator.translate(["The dog sleeps.", ""])    # ["Der Hund schläft.", ""]
        translator.nbest(["The dog sleeps."], n=2)       # [[Translation(text=..., score=-0.3), ...]]
    """

    def __init__(
        self,
        model: Model,
        vocabulary: TextEncoder,
        options: DecodeHParams | None = None,
        max_length: int | None = None,
        num_parallel_batches: int = 1,
        constant_weights: bool = False,
        problem: Problem | None = None,
        translations: Translations | None = None,
        int8: bool = False,
        target_vocabulary: TextEncoder | None = None,
        alignment_heads: AlignmentHeads | None = None,
    ) -> None:
        self._model, self._int8, self.engine = model, int8, engines.describe(model, int8)
        self.vocabulary, self.problem = vocabulary, problem
        self.vocabularies = Vocabularies(vocabulary, target_vocabulary or vocabulary)
        self.options = options or DecodeHParams()
        check_tag(self.options.tag, self.vocabularies, problem)
        self.max_length = max_length or model.hparams.max_length
        self.num_parallel_batches, self.translations = num_parallel_batches, translations
        self.checkpoint: Checkpoint | None = None
        self.more_checkpoints: tuple[Checkpoint, ...] = ()
        self.find_heads: Callable[[], AlignmentHeads | None] = lambda: None
        settings = self.options, constant_weights, translations, int8
        engine = engines.engine_of(model, self.vocabularies.targets, *settings, alignment_heads)
        self.constraint, self._out_of_memory = engine.constraint, engine.out_of_memory
        self._search, self._sampler, self._scorer = engine.search, engine.sampler, engine.scorer
        self.detailer = Detailer(engine.annotate, self.vocabularies, alignment_heads)
        detailer = self.detailer if self.options.details else None
        coverage = engine.attend and CoveragePenalty(engine.attend, self.options.coverage_penalty)
        own = self.vocabularies.targets, problem, self.options, detailer, coverage
        self._postprocessor = Postprocessor(*own)
        self._engine, self._process = engine, os.getpid()

    @classmethod
    def load(
        cls,
        output_dir: str | Path | ModelFolder,
        checkpoint: str | None = None,
        decode_hparams: str | DecodeHParams = "",
        num_parallel_batches: int = 1,
        precision: str = "float32",
        constant_weights: bool = True,
        on_damaged: OnDamaged | None = None,
        engine: str = TENSORFLOW,
        on_note: OnNote = ignore_note,
        data_dir: str | Path | None = None,
    ) -> Translator:
        """Loads a trained model from an output_dir; the precision is independent of the training's.

        Args:
            output_dir: folder of the training, or a `ModelFolder`, whose files are not read again.
            checkpoint: "newest", "best", "average" or a file; see `select_checkpoint`, also for `None`.
            decode_hparams: overrides of the problem's own, such as "beam_size=8,alpha=0.6"; or all of them.
            num_parallel_batches: see `Translator`.
            precision: "float32"; "bfloat16" or "int8", which may be faster, and change a few words.
            constant_weights: whether the weights stay as they are loaded, as in int8; see `BeamSearch`.
            on_damaged: called with corrupt checkpoints that are skipped. `None` warns.
            engine: "tensorflow", or "ctranslate2", which needs the package of that name: the checkpoint is
                converted once, and kept beside it.
            on_note: called with a line for people when a checkpoint is converted, or alignment heads are
                chosen: where `decode_hparams` ask for alignments or markup and none are known, the dev split
                decides, which takes seconds; they are stored in the folder if it can be written and
                `checkpoint` is no file.
            data_dir: folder of that split. `None` is where the model was trained from.

        Raises:
            T2TError: there is no trained model, it is corrupt, `decode_hparams` is invalid, or it asks for
                shortlists and the folder has no translations, or for alignments and there is no data to
                choose heads by; the engine is not installed, or does not support the model, the options or
                the precision; or as `start_computing`.
        """
        settings = checkpoint, decode_hparams, num_parallel_batches, precision, constant_weights
        if not isinstance(output_dir, ModelFolder):
            output_dir = ModelFolder(path_of(output_dir, "output_dir"))
        return load(cls, output_dir, *settings, on_damaged, engine, on_note, data_dir)

    def load_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Loads the weights of another checkpoint of the same training; not with `constant_weights`.

        Raises:
            T2TError: the checkpoint is corrupt, or of another model; TensorFlow decodes in int8.
        """
        if self._int8:
            raise T2TError("weights in int8 do not change: load the checkpoint with Translator.load")
        check_not_forked(self._process)
        engines.load_weights(self._model, checkpoint)
        self.checkpoint = checkpoint

    @property
    def model(self) -> Transformer:
        """The model on TensorFlow; with CTranslate2, raises `T2TError`."""
        return engines.transformer_of(self._model)

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, lines: str, on_truncation: Callable[[Truncation], None] | None = None
    ) -> str: ...

    @overload
    def translate(
        self, lines: Iterable[str], on_truncation: Callable[[Truncation], None] | None = None
    ) -> list[str]: ...

    def translate(
        self, lines: str | Iterable[str], on_truncation: Callable[[Truncation], None] | None = None
    ) -> str | list[str]:
        """Returns the best output of each line, or of a single string. See `nbest`."""
        if isinstance(lines, str):
            return self.translate([lines], on_truncation)[0]
        return [outputs[0].text for outputs in self.nbest(lines, n=1, on_truncation=on_truncation)]

    def nbest(
        self,
        lines: str | Iterable[str],
        n: int | None = None,
        on_truncation: Callable[[Truncation], None] | None = None,
        on_progress: Callable[[DecodingProgress], None] | None = None,
        preprocessed: bool = False,
        prefixes: Sequence[str] | None = None,
        first_line: int = 1,
        completed: Mapping[int, list[Translation]] | None = None,
        on_outputs: Callable[[Mapping[int, list[Translation]]], None] | None = None,
        constraints: Sequence[LineConstraints | None] | None = None,
    ) -> list[list[Translation]]:
        """Returns the outputs of each line in input order; a single string is one line.

        They are the best ones, or drawn ones with sampling. Batches hold `options.batch_size` input tokens,
        of lines of similar length. A blank line has one empty output. Line ends in an output become spaces.
        Where the model has alignment heads, terms of constraints are checked, and tried once more without
        what the line has for them otherwise; see `Translation.unaligned`.

        Args:
            lines: source text; a line end in a line counts as a space.
            n: outputs per line, at most `options.beam_size`; fewer if the search finishes fewer. `None`
                takes the number from the options.
            on_truncation: called for each line that is too long. `None` warns, also that nobody checks terms.
            on_progress: called after each batch.
            preprocessed: whether lines are the model's inputs already, as those of a split are.
            prefixes: beginning of the outputs of each line; "" or `None` forces nothing. The forced tokens
                are those of the vocabulary's segmentation of the prefix. In T2T's vocabularies the last word
                ends there; in others the model may continue it, but has rarely seen it segmented like this.
            first_line: number of the first line, for messages and as a seed of its samples.
            completed: outputs by index of the line that an earlier call with equal arguments has passed to
                `on_outputs`. They are not decoded again; the other lines have the same outputs as then.
            on_outputs: called with the outputs of each complete batch, by index of the line.
            constraints: phrases that the outputs of each line must have or must not have; `None` has none.

        Raises:
            T2TError: a line or prefix is no string or no valid Unicode, a prefix is too long, has no source
                or is for trees, or n is out of range; or as `constraints_of` and `constrained_lines`.
        """
        n = self.options.outputs if n is None else n
        if not (isinstance(n, Integral) and 1 <= n <= self.options.beam_size):
            raise T2TError(f"n={shown(n)} must be between 1 and beam_size={self.options.beam_size}")
        lines = texts_of([lines] if isinstance(lines, str) else lines, first=first_line)
        prefixes = None if prefixes is None else texts_of(prefixes, "prefixes", first_line, optional=True)
        constraints = constraints_of(constraints, len(lines), first_line)
        after = on_truncation or _warn, on_progress, first_line, completed, on_outputs
        preprocessor = self._preprocessor(first_line)
        if constraints:
            check_constrainable(self.options, self.problem, prefixes)
            if not on_truncation and (note := unchecked(constraints, self.why_unchecked)):
                warnings.warn(note, stacklevel=2)
        if self.options.markup:
            return nbest_with_markup(self, lines, n, prefixes, preprocessed, *after)
        inputs = preprocessor.inputs(lines, preprocessed)
        if self.options.split_sentences:
            preprocessor.check_single("split_sentences", inputs, prefixes, n)
            return translate_paragraphs(self, inputs, *after)
        source_ids = preprocessor.sources(inputs, on_truncation or _warn)
        prefix_ids = preprocessor.prefixes(inputs, prefixes)
        settings = preprocessor, constraints, inputs, source_ids
        bound = constrained_lines(lambda: engines.lexical_search_of(self._engine), *settings)
        count = self.options.candidates_of(n)

        def free(indices: list[int]) -> Iterable[Hypotheses]:
            rows = pad([source_ids[index] for index in indices])
            prefix_rows = pad([prefix_ids[index] for index in indices]) if prefix_ids else None
            numbers = [first_line + index for index in indices]
            return zip(indices, *self._decode(rows, numbers, count, prefix_rows), strict=True)

        def finished(
            found: Iterable[Hypotheses], postprocessor: Postprocessor
        ) -> dict[int, list[Translation]]:
            decoded = {at: Decoded(inputs[at], source_ids[at], ids, scores) for at, ids, scores in found}
            return dict(zip(decoded, postprocessor.outputs(decoded.values(), n), strict=True))

        check = TermCheck.of(bound.constraints, lines, inputs, self.options.tag)
        checks = bool(check.lines and self.term_detailer)  # which is made here, before threads decode

        def checked(found: Iterable[Hypotheses]) -> dict[int, list[Translation]]:
            """Returns the outputs of the lines with terms."""
            aligning = replace(self._postprocessor, detailer=self.term_detailer)
            own = check(
                finished((one for one in found if one[0] in check.lines), aligning),
                lambda indices: finished(free(indices), aligning),
                lambda stricter: finished(bound.again(stricter, inputs, count), aligning),
            )
            if self.options.details:
                return {**own}
            return {at: [replace(one, details=None) for one in outputs] for at, outputs in own.items()}

        def decode(batch: list[int]) -> list[list[Translation]]:
            outputs = {index: [Translation("", 0.0)] for index in batch}
            indices = [index for index in batch if not is_blank(inputs[index])]
            found: list[Hypotheses] = []
            if any(index not in bound for index in indices):
                found += free(indices)
            found += bound.search(indices, count)
            outputs |= finished(found, self._postprocessor)
            if checks:
                outputs |= checked(found)
            return [bound.mark(*each) for each in outputs.items()]

        lengths, batch_size = [len(ids) for ids in source_ids], self.options.tokens_at_once
        return self.map_batches(decode, lengths, batch_size, on_progress, completed, on_outputs)

    def encode(self, line: str, is_output: bool = False) -> list[int]:
        """Returns the ids of a line, or of an output, with EOS, not truncated; line ends count as spaces.

        Raises:
            T2TError: the line is no string, or no valid Unicode.
        """
        (line,), preprocessor = texts_of([line]), self._preprocessor()
        texts = [line.translate(LINE_ENDS)]
        texts = texts if is_output else preprocessor.preprocess(texts)
        return [*preprocessor.encode(texts, self.vocabularies[is_output])[0], EOS]

    def best_ids(self, source: list[int]) -> list[int]:
        """Returns the ids of the best output of one input, with EOS, exactly as the search has chosen them.

        An output of maximum length may have no EOS. If the weights contain NaN, it is empty.
        """
        check_not_forked(self._process)
        options = self.options
        found, scores = self._search([source], options.beam_size, options.alpha, options.extra_length)
        ids = np.asarray(found)[0, 0].tolist() if np.asarray(scores)[0, 0] > -np.inf else []
        return ids[: ids.index(EOS) + 1] if EOS in ids else until_eos(ids)

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        on_truncation: Callable[[Truncation], None] | None = None,
        on_progress: Callable[[DecodingProgress], None] | None = None,
        first_line: int = 1,
        completed: Mapping[int, Score] | None = None,
        on_scores: Callable[[Mapping[int, Score]], None] | None = None,
    ) -> list[Score]:
        """Returns the model's log-probabilities of given outputs, without length penalty or constraint.

        Args:
            pairs: source text and output, as `nbest` takes and returns them; line ends count as spaces.
            on_truncation: called for each source that is too long. `None` warns.
            on_progress: called after each batch.
            first_line: number of the first pair, for messages.
            completed: see `nbest`; scores by index of the pair.
            on_scores: called with the scores of each complete batch, by index of the pair.

        Raises:
            T2TError: a pair is not of strings, has no source, is no valid Unicode, or has an output that is
                too long or does not fit the problem.
        """
        cleaned = [[text.translate(LINE_ENDS) for text in pair] for pair in pairs_of(pairs, first_line)]
        preprocessor = self._preprocessor(first_line)
        inputs = preprocessor.preprocess([source for source, _ in cleaned])
        for number, text in enumerate(inputs, start=first_line):
            if is_blank(text):
                raise LineError(number, "no source")
        targets = preprocessor.targets([output for _, output in cleaned])
        sources = preprocessor.sources(inputs, on_truncation or _warn)

        def score(batch: list[int]) -> list[Score]:
            if self.options.details:
                return self._postprocessor.scores(
                    [Decoded(inputs[at], sources[at], [targets[at]], []) for at in batch],
                    [cleaned[at][1] for at in batch],
                )
            source_rows, target_rows = (pad([side[index] for index in batch]) for side in (sources, targets))
            log_probs = np.asarray(self._scorer(source_rows, target_rows)).tolist()
            return [Score(value, len(targets[index])) for index, value in zip(batch, log_probs, strict=True)]

        lengths = [max(map(len, pair)) for pair in zip(sources, targets, strict=True)]
        return self.map_batches(score, lengths, self.options.batch_size, on_progress, completed, on_scores)

    def map_batches(
        self, function: Callable[[list[int]], list[Result]], lengths: list[int], batch_size: int, *rest: Any
    ) -> list[Result]:
        """Calls `batching.map_batches`, which has `rest` too.

        Raises:
            T2TError: memory is short, or this process was forked after the model was loaded.
        """
        check_not_forked(self._process)
        try:
            results = map_batches(function, lengths, batch_size, self.num_parallel_batches, *rest)
        except self._out_of_memory as error:
            width = "candidates" if self.options.mbr else "beam_size"
            raise T2TError(
                f"out of memory: lower batch_size (it is {self.options.batch_size} tokens) or {width} "
                f"({getattr(self.options, width)}) in --decode_hparams"
            ) from error
        return [results[index] for index in range(len(lengths))]

    def _preprocessor(self, first_line: int = 1) -> Preprocessor:
        return Preprocessor(self.vocabularies, self.problem, self.options, self.max_length, first_line)

    @cached_property
    def term_heads(self) -> AlignmentHeads | None:
        """The heads by which terms are checked; `None` if the model has none."""
        return self.detailer.heads or self.find_heads()

    @property
    def why_unchecked(self) -> str:
        """The reason for which terms are not checked; empty if they are."""
        if self.term_heads:
            return ""
        return OF_ENSEMBLE if self.more_checkpoints else NO_HEADS

    @cached_property
    def term_detailer(self) -> Detailer | None:
        """Aligns the words of outputs with terms; `None` if the model has no alignment heads."""
        if self.detailer.heads:
            return self.detailer
        if not self.term_heads:
            return None
        annotate = engines.annotator_of(self._engine, self.term_heads)
        return Detailer(annotate, self.vocabularies, self.term_heads)

    def _decode(
        self, rows: np.ndarray, numbers: list[int], n: int, prefixes: np.ndarray | None
    ) -> tuple[list[list[list[int]]], list[list[float]]]:
        """Returns ids, [batch, n, length], and scores, [batch, n]."""
        options = self.options
        settings = options.alpha, options.extra_length, n, prefixes
        if options.samples:
            ids, scores = self._sampler(rows, numbers, options.random_seed, *settings)
        else:
            ids, scores = self._search(rows, options.candidates_of(options.beam_size), *settings)
        return np.asarray(ids).tolist(), np.asarray(scores).tolist()


def _warn(truncation: Truncation) -> None:
    warnings.warn(str(truncation), stacklevel=5)
