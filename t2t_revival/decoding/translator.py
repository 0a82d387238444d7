"""`Translator`: text in, text out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_revival.checkpoints.directory import Checkpoint, OnDamaged
from t2t_revival.checkpoints.selection import NAMES
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.data.vocabulary.text_encoder import symbol
from t2t_revival.data.word_alignment import Link
from t2t_revival.decoding import capabilities, engines
from t2t_revival.decoding.addons import HUB, Shortlist, addon
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.engine import EngineConfig, Inputs, SearchSettings
from t2t_revival.decoding.engines import Model
from t2t_revival.decoding.lines.batching import BatchPlan, OnProgress, Result, map_batches, without
from t2t_revival.decoding.lines.detailer import Detailer, Hypothesis, encode_pairs
from t2t_revival.decoding.lines.fastest_batch import fastest_batch_size
from t2t_revival.decoding.lines.line_decoder import Request, trimmed
from t2t_revival.decoding.lines.local_search import LocalModel, LocalSearch
from t2t_revival.decoding.lines.notes import NO_HEADS, OF_ENSEMBLE, OnNote, ignore_note
from t2t_revival.decoding.lines.pipeline import LineTranslator, warn_of_truncation
from t2t_revival.decoding.lines.preprocessor import (
    OnTruncation,
    Preprocessor,
    check_tag,
    pad,
    pieces_of,
    plain,
)
from t2t_revival.decoding.loading import ModelPlan, plan_model
from t2t_revival.decoding.options import AUTO_BATCH, INT8, TENSORFLOW, DecodeHParams
from t2t_revival.decoding.outputs import Score
from t2t_revival.errors import LineError, OutOfMemoryError, T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils.files import path_of
from t2t_revival.utils.processes import check_not_forked
from t2t_revival.utils.texts import is_blank, pairs_of, texts_of
from t2t_revival.utils.unicode_forms import NFC

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder
    from t2t_revival.model import Transformer
    from t2t_revival.problems.problem import Problem

VARIABLE = EngineConfig(constant_weights=False)


class Translator(LineTranslator):
    """A model with its vocabularies: translates lines, one output line for each.

    Args:
        model: its weights may change between calls, unless the config says not; or a `ConvertedModel`.
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
        hparams: of the model.
        checkpoint, more_checkpoints: those of the weights; the latter of an ensemble's other models.
        trained_form: Unicode's form of the training data; "" if it has several.
        reload: loads the same checkpoints, with decode_hparams and alignment_heads; `None` if there are none.
        find_heads: returns the heads that align terms, where `alignment_heads` are not given.
        engine: the engine and the precision in which it computes, for people.

    Raises:
        T2TError: trees lack their tokens; or as `capabilities.check`.

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
        self.vocabulary, self.problem, self.hparams = vocabulary, problem, model.hparams
        self._vocabularies = Vocabularies(vocabulary, target_vocabulary or vocabulary.of_targets)
        self.options = options or DecodeHParams()
        if not self.options.batch_size:
            raise T2TError(f"decode_hparams: {AUTO_BATCH} is for models that are loaded: give a number")
        check_tag(self.options.tag, self.vocabularies, problem)
        self._max_length = max_length or model.hparams.max_length
        self.num_parallel_batches = config.parallel
        self.checkpoint: Checkpoint | None = None
        self.more_checkpoints: tuple[Checkpoint, ...] = ()
        self.reload: Callable[..., Translator] | None = None
        self.translations: Shortlist | None = None
        self.find_heads: Callable[[], AlignmentHeads | None] = lambda: None
        self.trained_form = NFC
        self.places = [config.place, *capabilities.places_of(model.hparams, problem)]
        capabilities.check(self.options.asked({"int8": config.precision == INT8}), *self.places)
        engine = engines.open_engine(model, self.vocabularies, self.options, config)
        if alignment_heads:
            alignment_heads.check(model.hparams)
        self.engine = engine.description
        targets, alternatives = self.vocabularies.targets, self.options.alternatives
        self.detailer = Detailer(engine.annotate, self.vocabularies, alignment_heads, alternatives)
        weight = self.options.coverage_penalty
        coverage = addon("coverage")(engine.attend, weight) if weight else None
        self._local = LocalModel(engine, targets, coverage, self.detailer)
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
        alignment_heads: AlignmentHeads | None = None,
    ) -> Translator:
        """Loads a trained model from an output_dir; the precision is independent of the training's.

        Args:
            output_dir: folder of the training, or a `ModelFolder`, whose files are not read again; or a
                name of the Hugging Face Hub, "hf:Helsinki-NLP/opus-mt-en-de": downloaded and imported once.
            checkpoint: "newest", "best", "average" or a file; see `select_checkpoint`, also for `None`.
            decode_hparams: overrides of the problem's own, such as "beam_size=8,alpha=0.6"; or all of them.
            num_parallel_batches: see `Translator`.
            precision: "float32"; "bfloat16", or CTranslate2's "int8", which may be faster, and change a few
                words.
            constant_weights: whether the weights stay as they are loaded; see `SearchGraph`.
            on_damaged: called with corrupt checkpoints that are skipped. `None` warns.
            engine: "tensorflow", or "ctranslate2", which needs the package of that name: the checkpoint is
                converted once, and kept beside it.
            on_note: called with a line for people when a checkpoint is converted, or alignment heads are
                chosen: where `decode_hparams` ask for alignments or markup and none are known, the dev split
                decides, which takes seconds; they are stored in the folder if it can be written and
                `checkpoint` is no file.
            data_dir: folder of that split. `None` is where the model was trained from.
            alignment_heads: align words, if `decode_hparams` ask for that. `None` are those of the folder.

        Raises:
            T2TError: there is no trained model, it is corrupt, `decode_hparams` is invalid, or it asks for
                shortlists and the folder has no translations, or for alignments and there is no data to
                choose heads by; the engine is not installed, or does not support the model, the options or
                the precision; or as `start_computing`.
        """
        if isinstance(output_dir, str) and output_dir.startswith(HUB):
            output_dir = addon("hub_model")(output_dir)
        if not isinstance(output_dir, ModelFolder):
            output_dir = ModelFolder(path_of(output_dir, "output_dir"))
        folder = output_dir
        config = EngineConfig(engine, precision, num_parallel_batches, constant_weights)

        plan = plan_model(
            folder, checkpoint, decode_hparams, config, on_damaged, on_note, data_dir, alignment_heads
        )

        def chosen(model: Model) -> AlignmentHeads:
            assert plan.choice
            translator = cls._of(model, plan.of_choice())
            return plan.choice.make(translator, checkpoint not in (None, *NAMES), on_note)

        if plan.choice and engine != TENSORFLOW:  # which has no attention to choose by
            plan = plan.with_heads(chosen(plan.of_choice().load()[0]))
        model, selected = plan.load()
        if plan.choice:
            plan = plan.with_heads(chosen(model))
        if not plan.options.batch_size:
            size = fastest_batch_size(lambda tried: cls._of(model, plan.with_batch_size(tried)), on_note)
            plan = plan.with_batch_size(size)
        translator = cls._of(model, plan)
        translator.checkpoint, translator.translations = selected, plan.translations
        translator.reload = partial(
            cls.load,
            folder.path.absolute(),
            num_parallel_batches=num_parallel_batches,
            precision=precision,
            constant_weights=constant_weights,
            engine=engine,
        )
        translator.find_heads = partial(AlignmentHeads.find, folder.path, folder.hparams)
        translator.trained_form = folder.run.unicode_form
        return translator

    @classmethod
    def _of(cls, model: Model, plan: ModelPlan) -> Translator:
        source, target = plan.folder.vocabularies
        return cls(
            model,
            source,
            plan.options,
            config=plan.config,
            problem=plan.problem,
            target_vocabulary=target,
            alignment_heads=plan.heads,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles what a copy is loaded by: the files of the checkpoints, and how to decode."""
        if self.reload is None:
            raise T2TError(
                "a Translator not loaded from a folder cannot be pickled: make it where it is used"
            )
        reload = self.reload
        if self.checkpoint and not self.more_checkpoints:  # which `load_checkpoint` may have changed
            reload = partial(reload, checkpoint=str(self.checkpoint.path.absolute()))
        return _loaded_again, (reload, self.options, self.detailer.heads, self.problem)

    def __copy__(self) -> Translator:
        """Returns a translator of the same model, which may get other options."""
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    @property
    def vocabularies(self) -> Vocabularies:
        """Vocabularies of source and target."""
        return self._vocabularies

    @property
    def max_length(self) -> int:
        """Maximum number of tokens of an input, EOS included; longer ones are cut."""
        return self._max_length

    def form_for(self, lines: Sequence[str]) -> str:
        """Returns Unicode's form in which lines are like the training data; "" if that has several."""
        return self.trained_form

    def load_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Loads the weights of another checkpoint of the same training; not with constant weights.

        Raises:
            T2TError: the checkpoint is corrupt, or of another model.
        """
        check_not_forked(self._process)
        self._engine.load_weights(checkpoint)
        self.checkpoint = checkpoint

    @property
    def model(self) -> Transformer:
        """The model on TensorFlow; with CTranslate2, raises `T2TError`."""
        return self._engine.model

    def origin(self, has_terms: bool = False) -> dict[str, Any]:
        """Returns everything that outputs depend on, but for the lines, by names for people."""
        assert self.checkpoint
        heads = self.term_heads if has_terms else self.detailer.heads
        return {
            "checkpoint": ", ".join(one.name for one in (self.checkpoint, *self.more_checkpoints)),
            "problem": self.problem and self.problem.name,
            "engine": self.engine,
            "max_length": self.max_length,
            "batches side by side": self.num_parallel_batches,
            "alignment heads": heads and asdict(heads),
            "translations of the shortlist": self.translations and self.translations.digest,
            **asdict(self.options),
        }

    def open(self, request: Request, on_truncation: OnTruncation) -> LocalSearch:
        """Encodes a request; see `LocalSearch` for errors."""
        preprocessor = self.preprocessor(request.first_number)
        preprocessor.check_tags(request.pieces)
        terms = any(constraints.terms for constraints in request.constraints.values())
        detailer = self.term_detailer if terms else None  # made here, before threads decode
        return LocalSearch(self._local, request, preprocessor, on_truncation, self.align, detailer)

    def encode(self, line: str, is_output: bool = False) -> list[int]:
        """Returns the ids of a line, or of an output, with EOS, not truncated; line ends count as spaces.

        Raises:
            T2TError: the line is no string, or no valid Unicode.
        """
        (line,), preprocessor = texts_of([line]), self.preprocessor()
        texts = plain([line], self.options)
        texts = texts if is_output else preprocessor.preprocess(texts)
        return [*preprocessor.encode(texts, self.vocabularies[is_output])[0], EOS]

    def best_ids(self, source: list[int]) -> list[int]:
        """Returns the ids of the best output of one input, with EOS, exactly as the search has chosen them.

        An output of maximum length may have no EOS. If the weights contain NaN, it is empty.
        """
        check_not_forked(self._process)
        found, scores = self._engine.search(Inputs(pad([source]), SearchSettings.of(self.options)))
        ids = np.asarray(found)[0, 0].tolist() if np.asarray(scores)[0, 0] > -np.inf else []
        return trimmed(ids)

    def score(
        self, pairs: Iterable[tuple[str, str]], on_truncation: OnTruncation | None = None, first_line: int = 1
    ) -> list[Score]:
        """Returns the model's log-probabilities of given outputs; see `iterate_scores`."""
        return [*self.iterate_scores(pairs, on_truncation or warn_of_truncation, first_line=first_line)]

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
        cleaned = [plain(pair, self.options) for pair in pairs_of(pairs, first_line)]
        preprocessor = self.preprocessor(first_line)
        inputs = preprocessor.preprocess([source for source, _ in cleaned])
        for number, text in enumerate(inputs, start=first_line):
            if is_blank(text):
                raise LineError(number, "no source")
        targets = preprocessor.targets([output for _, output in cleaned])
        encoded = preprocessor.sources(pieces_of(inputs), on_truncation or warn_of_truncation)
        sources = [source.ids for source in encoded]

        def score(batch: list[int]) -> list[Score]:
            if self.options.details:
                tag = symbol(self.options.tag)
                hypotheses = [
                    Hypothesis(inputs[at].removeprefix(tag), tag, sources[at], cleaned[at][1], targets[at])
                    for at in batch
                ]
                return [
                    Score(sum(token.log_prob for token in details.tokens), len(details.tokens), details)
                    for details in self.detailer(hypotheses)
                ]
            source_rows, target_rows = (pad([side[index] for index in batch]) for side in (sources, targets))
            log_probs = np.asarray(self._engine.score(source_rows, target_rows)).tolist()
            return [Score(value, len(targets[index])) for index, value in zip(batch, log_probs, strict=True)]

        lengths = [max(map(len, pair)) for pair in zip(sources, targets, strict=True)]
        plan = BatchPlan(lengths, self.options.batch_size)
        return without(skip, self.map_batches(score, plan, on_progress, skip))

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
        encoded = encode_pairs(self.preprocessor(), pairs_of(pairs), on_truncation or warn_of_truncation)

        def links(batch: list[int]) -> list[list[Link]]:
            found: dict[int, list[Link]] = {index: [] for index in batch}
            numbers = [i for i in batch if not (is_blank(encoded[i].source) or is_blank(encoded[i].text))]
            details = self.detailer([encoded[index] for index in numbers])
            found |= {index: [*one.links] for index, one in zip(numbers, details, strict=True)}
            return [*found.values()]

        lengths = [max(len(one.source_ids), len(one.ids)) for one in encoded]
        plan = BatchPlan(lengths, self.options.batch_size)
        return without(skip, self.map_batches(links, plan, on_progress, skip))

    def map_batches(
        self,
        function: Callable[[list[int]], list[Result]],
        plan: BatchPlan,
        on_progress: OnProgress | None = None,
        skip: int = 0,
    ) -> Iterator[tuple[range, list[Result]]]:
        """Calls `batching.map_batches`.

        Raises:
            T2TError: memory is short, or this process was forked after the model was loaded.
        """
        check_not_forked(self._process)
        try:
            yield from map_batches(function, plan, self.num_parallel_batches, on_progress, skip)
        except self._engine.out_of_memory as error:
            width = "candidates" if self.options.mbr else "beam_size"
            raise OutOfMemoryError(
                f"out of memory: lower batch_size (it is {self.options.batch_size} tokens) or {width} "
                f"({getattr(self.options, width)}) in --decode_hparams"
            ) from error

    def preprocessor(self, first_line: int = 1) -> Preprocessor:
        """Returns what makes ids of lines, of which the first has a number, for messages."""
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
        self.term_heads.check(self.model.hparams)
        return Detailer(self._engine.annotate, self.vocabularies, self.term_heads)


def _loaded_again(
    reload: Callable[..., Translator],
    options: DecodeHParams,
    heads: AlignmentHeads | None,
    problem: Problem | None,
) -> Translator:
    translator = reload(decode_hparams=options, alignment_heads=heads)
    translator.problem = problem
    return translator
