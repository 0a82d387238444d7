"""`Translator`: text in, text out."""

from __future__ import annotations

import os
import warnings
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate, chain
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from t2t_revival.checkpoints.directory import Checkpoint, OnDamaged
from t2t_revival.checkpoints.selection import NAMES
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.sentencepiece import EOS, until_eos
from t2t_revival.data.word_alignment import Link
from t2t_revival.decoding import capabilities, engines
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.batching import DecodingProgress, OnProgress, Result, map_batches, without
from t2t_revival.decoding.constrained_lines import constrained_lines
from t2t_revival.decoding.coverage import CoveragePenalty
from t2t_revival.decoding.detailer import Detailer, encode_pairs
from t2t_revival.decoding.engine import EngineConfig, Inputs, SearchSettings
from t2t_revival.decoding.engines import Model
from t2t_revival.decoding.head_choice import HeadChoice, HeadSearch
from t2t_revival.decoding.lexical_constraints import constraints_of
from t2t_revival.decoding.line_decoder import EncodedLines, LineDecoder
from t2t_revival.decoding.loading import load
from t2t_revival.decoding.markup.translation import MarkedLine, with_markup
from t2t_revival.decoding.notes import NO_HEADS, OF_ENSEMBLE, OnNote, ignore_note, unchecked
from t2t_revival.decoding.options import INT8, TENSORFLOW, DecodeHParams
from t2t_revival.decoding.outputs import Score, Translation
from t2t_revival.decoding.paragraphs import join_all, split_inputs
from t2t_revival.decoding.postprocessor import Decoded, Postprocessor
from t2t_revival.decoding.preprocessor import (
    LINE_ENDS,
    OnTruncation,
    Preprocessor,
    Truncation,
    check_tag,
    known_tags,
    pad,
)
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

VARIABLE = EngineConfig(constant_weights=False)


class Translator:
    """A model with its vocabularies: translates lines, one output line for each.

    Args:
        model: its weights may change between calls, unless the config says not; or a `CTranslate2Model`.
        vocabulary: vocabulary of source and target, or of the source.
        options: how to decode.
        max_length: maximum tokens of an input, EOS included; longer ones are cut. `None` is the model's own.
        config: of the engine.
        problem: pre- and postprocesses text. `None` leaves it as it is.
        target_vocabulary: the target's own vocabulary. `None` is the source's.
        alignment_heads: align words, if the options ask for that.

    Attributes:
        detailer: computes details of outputs.
        vocabularies: of source and target.
        checkpoint, more_checkpoints: those of the weights; the latter of an ensemble's other models.
        find_heads: returns the heads that align terms, where `alignment_heads` are not given.
        engine: the engine and the precision in which it computes, for people.

    Raises:
        T2TError: trees lack their tokens, or TensorFlow int8 products; or as `capabilities.check`.

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
        config: EngineConfig = VARIABLE,
        problem: Problem | None = None,
        target_vocabulary: TextEncoder | None = None,
        alignment_heads: AlignmentHeads | None = None,
    ) -> None:
        self.vocabulary, self.problem = vocabulary, problem
        self.vocabularies = Vocabularies(vocabulary, target_vocabulary or vocabulary)
        self.options = options or DecodeHParams()
        check_tag(self.options.tag, self.vocabularies, problem)
        self.max_length = max_length or model.hparams.max_length
        self.num_parallel_batches = config.parallel
        self.checkpoint: Checkpoint | None = None
        self.more_checkpoints: tuple[Checkpoint, ...] = ()
        self.translations: Translations | None = None
        self.find_heads: Callable[[], AlignmentHeads | None] = lambda: None
        self._places = [config.place, *capabilities.places_of(model.hparams, problem)]
        capabilities.check(self.options.asked({"int8": config.precision == INT8}), *self._places)
        engine = engines.open_engine(model, self.vocabularies, self.options, config)
        if alignment_heads:
            alignment_heads.check(model.hparams)
        self.engine = engine.description
        self.detailer = Detailer(engine.annotate, self.vocabularies, alignment_heads)
        detailer = self.detailer if self.options.details else None
        weight = self.options.coverage_penalty
        coverage = CoveragePenalty(engine.attend, weight) if weight else None
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
            constant_weights: whether the weights stay as they are loaded, as in int8; see `SearchGraph`.
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
        if not isinstance(output_dir, ModelFolder):
            output_dir = ModelFolder(path_of(output_dir, "output_dir"))
        folder = output_dir
        config = EngineConfig(engine, precision, num_parallel_batches, constant_weights)

        def choose(
            model: Model, options: DecodeHParams, problem: Problem | None, choice: HeadChoice
        ) -> AlignmentHeads:
            plain = replace(options, alignments="", markup="")
            source, target = folder.vocabularies
            translator = cls(model, source, plain, problem=problem, target_vocabulary=target)
            return choice.make(translator.head_search, checkpoint not in (None, *NAMES), on_note)

        loaded = load(folder, checkpoint, decode_hparams, config, on_damaged, on_note, data_dir, choose)
        translator = cls(
            loaded.model,
            folder.vocabularies.inputs,
            loaded.options,
            config=config,
            problem=loaded.problem,
            target_vocabulary=folder.vocabularies.targets,
            alignment_heads=loaded.heads,
        )
        translator.checkpoint, translator.translations = loaded.checkpoint, loaded.translations
        translator.find_heads = partial(AlignmentHeads.find, folder.path, folder.hparams)
        return translator

    def load_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Loads the weights of another checkpoint of the same training; not with constant weights.

        Raises:
            T2TError: the checkpoint is corrupt, or of another model; TensorFlow decodes in int8.
        """
        check_not_forked(self._process)
        self._engine.load_weights(checkpoint)
        self.checkpoint = checkpoint

    @property
    def model(self) -> Transformer:
        """The model on TensorFlow; with CTranslate2, raises `T2TError`."""
        return self._engine.model

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, lines: str, on_truncation: OnTruncation | None = None
    ) -> str: ...

    @overload
    def translate(self, lines: Iterable[str], on_truncation: OnTruncation | None = None) -> list[str]: ...

    def translate(
        self, lines: str | Iterable[str], on_truncation: OnTruncation | None = None
    ) -> str | list[str]:
        """Returns the best output of each line, or of a single string. See `nbest`."""
        if isinstance(lines, str):
            return self.translate([lines], on_truncation)[0]
        return [outputs[0].text for outputs in self.nbest(lines, n=1, on_truncation=on_truncation)]

    def nbest(
        self,
        lines: str | Iterable[str],
        n: int | None = None,
        on_truncation: OnTruncation | None = None,
        preprocessed: bool = False,
        prefixes: Sequence[str] | None = None,
        first_line: int = 1,
        constraints: Sequence[LineConstraints | None] | None = None,
    ) -> list[list[Translation]]:
        """Returns the outputs of each line in input order; a single string is one line. See `iterate`."""
        lines = [lines] if isinstance(lines, str) else lines
        return [*self.iterate(lines, n, on_truncation, None, preprocessed, prefixes, first_line, constraints)]

    def iterate(
        self,
        lines: Iterable[str],
        n: int | None = None,
        on_truncation: OnTruncation | None = None,
        on_progress: OnProgress | None = None,
        preprocessed: bool = False,
        prefixes: Sequence[str] | None = None,
        first_line: int = 1,
        constraints: Sequence[LineConstraints | None] | None = None,
        skip: int = 0,
    ) -> Iterator[list[Translation]]:
        """Checks all lines, and returns an iterator over the outputs of each, in input order.

        They are the best ones, or drawn ones with sampling. Batches hold `options.batch_size` input tokens,
        of lines of similar length in windows of consecutive lines, whose outputs come together. A blank line
        has one empty output. Line ends in an output become spaces. Where the model has alignment heads, terms
        of constraints are checked, and tried once more without what the line has for them otherwise; see
        `Translation.unaligned`.

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
            constraints: phrases that the outputs of each line must have or must not have; `None` has none.
            skip: number of lines at the beginning that have no outputs here; those of the others are the
                same, to the bit.

        Raises:
            T2TError: a line or prefix is no string or no valid Unicode, a prefix is too long, has no source
                or is for trees, or n is out of range; or as `constraints_of` and `constrained_lines`.
        """
        n = self.options.outputs if n is None else n
        if not (isinstance(n, Integral) and 1 <= n <= self.options.beam_size):
            raise T2TError(f"n={shown(n)} must be between 1 and beam_size={self.options.beam_size}")
        lines = texts_of(lines, first=first_line)
        prefixes = None if prefixes is None else texts_of(prefixes, "prefixes", first_line, optional=True)
        constraints = constraints_of(constraints, len(lines), first_line)
        preprocessor = self.preprocessor(first_line)
        of_call = {"n": n > 1, "prefixes": prefixes and any(prefixes), "constraints": constraints}
        capabilities.check(self.options.asked(of_call), *self._places)
        if constraints and not on_truncation and (note := unchecked(constraints, self.why_unchecked)):
            warnings.warn(note, stacklevel=3)
        texts, marked, paragraphs = [line.translate(LINE_ENDS) for line in lines], None, None
        preprocessor.check_unicode(texts)
        if self.options.markup:
            tags = known_tags(self.vocabularies, self.problem)
            marked = [MarkedLine.parse(text, self.options.markup, tags) for text in texts]
            texts = [line.text for line in marked]
        texts = preprocessor.inputs(texts, preprocessed)
        ends: Sequence[int] = range(1, len(texts) + 1)  # of lines, in inputs
        if self.options.split_sentences:
            paragraphs = split_inputs(texts, self.vocabularies.inputs, self.problem, self.max_length)
            parts = [paragraph.texts or [""] for paragraph in paragraphs]
            ends, texts = [*accumulate(map(len, parts))], [*chain.from_iterable(parts)]
        cut: dict[int, Truncation] = {}
        ids = preprocessor.sources(texts, lambda one: cut.update({one.number - first_line: one}))
        for index, truncation in cut.items():
            (on_truncation or _warn)(replace(truncation, number=first_line + bisect_right(ends, index)))
        prefix_ids = preprocessor.prefixes(texts, prefixes)
        bound = constrained_lines(self._engine, preprocessor, constraints, texts, ids)
        check = TermCheck.of(bound.constraints, lines, texts, self.options.tag)
        detailer = self.term_detailer if check.lines else None  # made here, before threads decode
        aligning = replace(self._postprocessor, detailer=detailer) if detailer else None
        inputs = EncodedLines(texts, ids, prefix_ids, 1 if paragraphs else first_line, cut.keys())
        decode = LineDecoder(
            inputs, bound, self._engine, self.options, self._postprocessor, n, check, aligning
        )

        def show(progress: DecodingProgress) -> None:
            if on_progress:
                on_progress(replace(progress, done=bisect_right(ends, progress.done), total=len(lines)))

        def windows() -> Iterator[tuple[range, list[list[Translation]]]]:
            lengths, batch_size = [*map(len, ids)], self.options.tokens_at_once
            known = ends[skip - 1] if skip else 0
            for window, outputs in self.map_batches(decode, lengths, batch_size, show, set(ends), known):
                first, end = (bisect_right(ends, index) for index in (window.start, window.stop))
                best = [one[0] for one in outputs]
                if paragraphs:
                    best = join_all(paragraphs[first:end], best)
                if marked:
                    best = with_markup(marked[first:end], best, self.align)
                yield range(first, end), [[one] for one in best] if paragraphs or marked else outputs

        return without(skip, windows())

    def encode(self, line: str, is_output: bool = False) -> list[int]:
        """Returns the ids of a line, or of an output, with EOS, not truncated; line ends count as spaces.

        Raises:
            T2TError: the line is no string, or no valid Unicode.
        """
        (line,), preprocessor = texts_of([line]), self.preprocessor()
        texts = [line.translate(LINE_ENDS)]
        texts = texts if is_output else preprocessor.preprocess(texts)
        return [*preprocessor.encode(texts, self.vocabularies[is_output])[0], EOS]

    def best_ids(self, source: list[int]) -> list[int]:
        """Returns the ids of the best output of one input, with EOS, exactly as the search has chosen them.

        An output of maximum length may have no EOS. If the weights contain NaN, it is empty.
        """
        check_not_forked(self._process)
        settings = SearchSettings(self.options.beam_size, self.options.alpha, self.options.extra_length)
        found, scores = self._engine.search(Inputs(pad([source]), settings))
        ids = np.asarray(found)[0, 0].tolist() if np.asarray(scores)[0, 0] > -np.inf else []
        return ids[: ids.index(EOS) + 1] if EOS in ids else until_eos(ids)

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        on_truncation: OnTruncation | None = None,
        first_line: int = 1,
    ) -> list[Score]:
        """Returns the model's log-probabilities of given outputs; see `iterate_scores`."""
        return [*self.iterate_scores(pairs, on_truncation or _warn, first_line=first_line)]

    def iterate_scores(
        self,
        pairs: Iterable[tuple[str, str]],
        on_truncation: OnTruncation | None = None,
        on_progress: OnProgress | None = None,
        first_line: int = 1,
        skip: int = 0,
    ) -> Iterator[Score]:
        """Returns an iterator over log-probabilities of outputs, without length penalty or constraint.

        Args:
            pairs: source text and output, as `nbest` takes and returns them; line ends count as spaces.
            on_truncation: called for each source that is too long. `None` warns.
            on_progress: called after each batch.
            first_line: number of the first pair, for messages.
            skip: see `iterate`; of pairs.

        Raises:
            T2TError: a pair is not of strings, has no source, is no valid Unicode, or has an output that is
                too long or does not fit the problem.
        """
        cleaned = [[text.translate(LINE_ENDS) for text in pair] for pair in pairs_of(pairs, first_line)]
        preprocessor = self.preprocessor(first_line)
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
            log_probs = np.asarray(self._engine.score(source_rows, target_rows)).tolist()
            return [Score(value, len(targets[index])) for index, value in zip(batch, log_probs, strict=True)]

        lengths = [max(map(len, pair)) for pair in zip(sources, targets, strict=True)]
        windows = self.map_batches(score, lengths, self.options.batch_size, on_progress, skip=skip)
        return without(skip, windows)

    def align(
        self,
        pairs: Iterable[tuple[str, str]],
        on_truncation: OnTruncation | None = None,
        on_progress: OnProgress | None = None,
        skip: int = 0,
    ) -> Iterator[list[Link]]:
        """Returns an iterator over the links of pairs, by one pass of the model, teacher-forced.

        Args:
            pairs: source text and output; one with an empty side has no links.
            on_truncation: called for each source that is too long. `None` warns.
            on_progress: called after each batch.
            skip: see `iterate`; of pairs.

        Raises:
            T2TError: a pair is not of strings, or a text is no valid Unicode.
        """
        encoded = encode_pairs(self.preprocessor(), pairs_of(pairs), on_truncation or _warn)

        def links(batch: list[int]) -> list[list[Link]]:
            found: dict[int, list[Link]] = {index: [] for index in batch}
            numbers = [i for i in batch if not (is_blank(encoded[i].source) or is_blank(encoded[i].text))]
            details = self.detailer([encoded[index] for index in numbers])
            found |= {index: [*one.links] for index, one in zip(numbers, details, strict=True)}
            return [*found.values()]

        lengths = [max(len(one.source_ids), len(one.ids)) for one in encoded]
        windows = self.map_batches(links, lengths, self.options.batch_size, on_progress, skip=skip)
        return without(skip, windows)

    def map_batches(
        self,
        function: Callable[[list[int]], list[Result]],
        lengths: list[int],
        batch_size: int,
        on_progress: OnProgress | None = None,
        ends: Container[int] | None = None,
        skip: int = 0,
    ) -> Iterator[tuple[range, list[Result]]]:
        """Calls `batching.map_batches`.

        Raises:
            T2TError: memory is short, or this process was forked after the model was loaded.
        """
        check_not_forked(self._process)
        try:
            parallel = self.num_parallel_batches
            yield from map_batches(function, lengths, batch_size, parallel, on_progress, ends, skip)
        except self._engine.out_of_memory as error:
            width = "candidates" if self.options.mbr else "beam_size"
            raise T2TError(
                f"out of memory: lower batch_size (it is {self.options.batch_size} tokens) or {width} "
                f"({getattr(self.options, width)}) in --decode_hparams"
            ) from error

    def preprocessor(self, first_line: int = 1) -> Preprocessor:
        """Returns what makes ids of lines, of which the first has a number, for messages."""
        return Preprocessor(self.vocabularies, self.problem, self.options, self.max_length, first_line)

    @property
    def head_search(self) -> HeadSearch:
        """The choice of alignment heads for this model."""
        return HeadSearch(self.model, self.preprocessor(), self.map_batches)

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
        self.term_heads.check(self.model.hparams)
        return Detailer(self._engine.annotate, self.vocabularies, self.term_heads)


def _warn(truncation: Truncation) -> None:
    warnings.warn(str(truncation), stacklevel=5)
