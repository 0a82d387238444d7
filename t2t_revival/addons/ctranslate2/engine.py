"""Search and scoring by CTranslate2, an engine of its own for the same weights."""

from __future__ import annotations

import multiprocessing
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_revival.addons.ctranslate2.format import (
    MIN_POSITIONS,
    check_convertible,
    convert_checkpoint,
    format_vocabulary_map,
    open_converted,
)
from t2t_revival.checkpoints.directory import Checkpoint
from t2t_revival.checkpoints.file import weights_of
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.text_encoder import EOS, PAD, until_eos
from t2t_revival.data.workers import cores
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.alignment_heads import AlignmentHeads, all_heads
from t2t_revival.decoding.engine import Annotations, Engine, EngineConfig, Inputs, max_output_length
from t2t_revival.decoding.hypothesis_scores import ALPHA, NORMALIZE, finished_score
from t2t_revival.decoding.lines.notes import OnNote
from t2t_revival.decoding.options import CTRANSLATE2, PRECISIONS, DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.utils.extras import require
from t2t_revival.utils.freed_memory import returning_freed_memory
from t2t_revival.utils.processes import run_in_child, start_computing

if TYPE_CHECKING:
    import ctranslate2

    from t2t_revival.data.vocabulary import TextEncoder
    from t2t_revival.decoding.addons import Shortlist

MAX_BATCH_SIZE = 32  # sentences that a CPU decodes at once: with 128, int8 and float32 take 10% longer
GPU, CPU = "cuda", "cpu"


@dataclass(frozen=True)
class Hypothesis:
    """An output: its tokens with EOS, or without if it is cut, and its log-probability."""

    ids: list[int]
    log_prob: float

    @property
    def finished(self) -> bool:
        """True if it ends with EOS."""
        return self.ids[-1:] == [EOS]

    def score(self, terms: Mapping[str, float]) -> float:
        """Returns its score by the terms of the search."""
        return finished_score(self.log_prob, len(self.ids), terms)


@dataclass(frozen=True)
class Sentence:
    """An input: pieces of its source and of the output's beginning, and the output's maximum length."""

    source: list[str]
    prefix: list[str]
    max_length: int


class CTranslate2Model:
    """A trained model, converted for CTranslate2; `load_checkpoint` comes first.

    Args:
        hparams: of the model.
        vocabularies: of source and target.
        options: how to decode.
        config: of the engine, which has one thread for each batch.
        on_note: called with a line for people when a checkpoint is converted.
        translations: make the vocabulary map; `None` leaves it out.
        alignment_heads: align words; `None` for no alignments.

    Attributes:
        hparams, vocabularies: as given.
        device: that it computes on.
        vocabulary_map: its text; "" for none.
        heads: whose mean attention it returns: with a coverage penalty, all of the last layer.
        translator: has the weights.

    Raises:
        T2TError: CTranslate2 is not installed, or does not support the model, the options or the precision.
    """

    translator: ctranslate2.Translator

    def __init__(
        self,
        hparams: HParams,
        vocabularies: Vocabularies,
        options: DecodeHParams,
        config: EngineConfig,
        on_note: OnNote,
        translations: Shortlist | None = None,
        alignment_heads: AlignmentHeads | None = None,
    ) -> None:
        check_usable(hparams, options, config.precision)
        self.heads = all_heads(hparams) if options.coverage_penalty else alignment_heads
        if self.heads:
            self.heads.check(hparams)
        self.hparams, self.vocabularies, self.device = hparams, vocabularies, find_device()
        self.vocabulary_map = format_vocabulary_map(translations, vocabularies) if translations else ""
        self._longest = hparams.max_length + 2 * options.extra_length  # of a source, its prefix or its output
        self._config, self._on_note = config, on_note

    def load_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Loads a checkpoint, converted beside it; see `open_converted`.

        Raises:
            T2TError: it cannot be converted or loaded.
        """
        positions = max(1 << (self._longest - 1).bit_length(), MIN_POSITIONS)
        origin = {
            "ctranslate2": version("ctranslate2"),
            "weights": weights_of(checkpoint.path),
            "architecture": self.hparams.architecture(),
            "vocabulary": self.vocabularies.fingerprint,
            "positions": positions,
            "vocabulary_map": zlib.crc32(self.vocabulary_map.encode()),
            "heads": self.heads and [self.heads.layer, *self.heads.heads],
        }

        def convert(folder: Path) -> None:
            own = self.hparams, self.vocabularies, positions, self.vocabulary_map, self.heads
            if "tensorflow" in sys.modules or multiprocessing.current_process().daemon:
                start_computing()
                convert_checkpoint(checkpoint.path, folder, *own)
            else:
                run_in_child(
                    "the conversion for CTranslate2", convert_checkpoint, checkpoint.path, folder, *own
                )

        self.translator = open_converted(checkpoint.path, origin, convert, self._load, self._on_note)

    def _load(self, folder: Path) -> ctranslate2.Translator:
        import ctranslate2

        with _errors(), returning_freed_memory():  # that of the float32 weights
            return ctranslate2.Translator(
                str(folder),
                self.device,
                compute_type=self._config.precision,
                inter_threads=self._config.parallel,
                intra_threads=1,
            )


class CTranslate2Engine(Engine):
    """Decodes with CTranslate2.

    The search differs from that of `SearchGraph` in that it stops when beam_size hypotheses are finished.
    Their order and scores are by the same length penalty.

    Args:
        model: the converted model.
        vocabulary: of the outputs.
        options: how to decode.
        config: of the engine.
    """

    place = capabilities.CTRANSLATE2

    def __init__(
        self,
        model: CTranslate2Model,
        vocabulary: TextEncoder,
        options: DecodeHParams,
        config: EngineConfig,
    ) -> None:
        self._converted, self._options = model, options
        self._source_pieces, self._target_pieces = model.vocabularies.inputs.pieces, vocabulary.pieces
        self._ids = {piece: token for token, piece in enumerate(self._target_pieces)}
        self._bans_unknown = vocabulary.banned != PAD
        self._first = [self._target_pieces[vocabulary.first]] if vocabulary.first != PAD else []
        self.description = f"{CTRANSLATE2}, {config.precision}"

    def load_weights(self, checkpoint: Checkpoint) -> None:
        self._converted.load_checkpoint(checkpoint)

    def search(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        beam_size, extra_length, _, score_terms, _, _ = inputs.settings
        n = inputs.settings.width
        prefixes = inputs.prefixes if inputs.has_prefixes else [[]] * len(inputs.ids)
        sentences = [
            self._sentence(source, prefix, extra_length)
            for source, prefix in zip(inputs.ids, prefixes, strict=True)
        ]
        found = self._hypotheses(sentences, beam_size, score_terms)
        best = [_best(hypotheses, score_terms, n) for hypotheses in found]
        longest = max((len(output.ids) for outputs in best for output in outputs), default=0)
        ids = np.full((len(best), n, longest), PAD, np.int32)
        scores = np.full((len(best), n), -np.inf, np.float32)
        for row, outputs in enumerate(best):
            for place, output in enumerate(outputs):
                ids[row, place, : len(output.ids)] = output.ids
                scores[row, place] = output.score(score_terms)
        return ids, scores

    def score(self, source_ids: Any, target_ids: Any) -> np.ndarray:
        return np.array([sum(values) for values in self._log_probs(source_ids, target_ids)])

    def annotate(
        self, source_ids: Any, target_ids: Any, alternatives: int, heads: AlignmentHeads | None
    ) -> Annotations:
        if alternatives:
            raise self.place.refusal("alternatives")
        log_probs = np.zeros(np.shape(target_ids), np.float32)
        for row, values in zip(log_probs, self._log_probs(source_ids, target_ids), strict=True):
            row[: len(values)] = values
        none = np.zeros((*log_probs.shape, 0))
        attention = self.attend(source_ids, target_ids)[:, int(heads.shifted) :] if heads else none
        return Annotations(log_probs, none.astype(np.int32), none, attention)

    def attend(self, source_ids: Any, target_ids: Any) -> np.ndarray:
        """Returns the mean attention of the converted model's heads, float32 [batch, target, source]."""
        sources, targets = self._pieces(source_ids, target_ids)
        attention = np.zeros((*np.shape(target_ids), np.shape(source_ids)[1]), np.float32)
        with _errors():
            results = self._converted.translator.translate_batch(
                sources,
                targets,
                beam_size=1,
                max_input_length=0,
                max_decoding_length=attention.shape[1],
                return_end_token=True,
                return_attention=True,
            )
        for of_row, result, source in zip(attention, results, sources, strict=True):
            weights = np.array(result.attention[0], np.float32)  # without the end of the source
            of_row[: len(weights), : len(source)] = weights
            of_row[: len(weights), len(source)] = 1 - weights.sum(-1)
        return attention

    def _log_probs(self, source_ids: Any, target_ids: Any) -> Iterator[list[float]]:
        return self._token_log_probs(*self._pieces(source_ids, target_ids))

    def _pieces(self, source_ids: Any, target_ids: Any) -> tuple[list[list[str]], list[list[str]]]:
        sources = [_to_pieces(ids, self._source_pieces) for ids in source_ids]
        return sources, [_to_pieces(ids, self._target_pieces) for ids in target_ids]

    def _sentence(self, source: Sequence[int], prefix: Sequence[int], extra_length: int) -> Sentence:
        pieces = _to_pieces(source, self._source_pieces)
        beginning = _to_pieces(prefix, self._target_pieces) or self._first
        sizes = len(pieces) + 1, len(beginning), extra_length
        return Sentence(pieces, beginning, max_output_length(*sizes, self._options))

    def _hypotheses(
        self, sentences: Sequence[Sentence], beam_size: int, terms: Mapping[str, float]
    ) -> list[list[Hypothesis]]:
        """Returns the hypotheses of each sentence, none longer than its maximum.

        CTranslate2 has one maximum length for a batch. Up to its own, a sentence is searched as if it were
        alone: longer hypotheses are dropped. Where none of the others is finished, the sentence is translated
        again, with those of equal maximum, so that it is cut there.
        """
        found = self._translate(sentences, beam_size, terms)
        to_cut: dict[int, list[int]] = {}
        for index, (sentence, hypotheses) in enumerate(zip(sentences, found, strict=True)):
            found[index] = [one for one in hypotheses if len(one.ids) <= sentence.max_length]
            if len(found[index]) < len(hypotheses) and not any(one.finished for one in found[index]):
                to_cut.setdefault(sentence.max_length, []).append(index)
        for indices in to_cut.values():
            again = self._translate([sentences[index] for index in indices], beam_size, terms)
            for index, hypotheses in zip(indices, again, strict=True):
                found[index] = hypotheses
        return found

    def _translate(
        self, sentences: Sequence[Sentence], beam_size: int, terms: Mapping[str, float]
    ) -> list[list[Hypothesis]]:
        """Translates sentences whose outputs have at most the largest of their maximum lengths."""
        sources, prefixes = ([getattr(s, part) for s in sentences] for part in ("source", "prefix"))
        exponent = terms.get(ALPHA, 0.0) + terms.get(NORMALIZE, 0.0)
        with _errors():
            results = self._converted.translator.translate_batch(
                sources,
                prefixes if any(prefixes) else None,
                max_batch_size=MAX_BATCH_SIZE if self._converted.device == CPU else 0,
                beam_size=beam_size,
                num_hypotheses=beam_size,
                length_penalty=exponent,
                repetition_penalty=self._options.repetition_penalty,
                no_repeat_ngram_size=self._options.no_repeat_ngram_size,
                max_input_length=0,
                max_decoding_length=max(sentence.max_length for sentence in sentences),
                return_scores=True,
                return_end_token=True,
                use_vmap=bool(self._converted.vocabulary_map),
                disable_unk=self._bans_unknown,
            )
        forced = [0.0] * len(prefixes)  # log-probabilities of the prefixes, which the scores leave out
        if any(prefix != self._first for prefix in prefixes):
            forced = [sum(values[:-1]) for values in self._token_log_probs(sources, prefixes)]
        return [
            [
                Hypothesis([self._ids[piece] for piece in pieces], score * len(pieces) ** exponent + log_prob)
                for pieces, score in zip(result.hypotheses, result.scores, strict=True)
                if pieces
            ]
            or [Hypothesis([EOS], 0.0)]  # of a source without tokens
            for result, log_prob in zip(results, forced, strict=True)
        ]

    def _token_log_probs(self, sources: list[list[str]], targets: list[list[str]]) -> Iterator[list[float]]:
        """Yields the log-probabilities of each target's tokens, that of EOS last."""
        with _errors():
            results = self._converted.translator.score_batch(sources, targets, max_input_length=0)
        beginning = [0.0] * len(self._first)
        yield from (beginning + result.log_probs[len(beginning) :] for result in results)


def check_usable(hparams: HParams, options: DecodeHParams, precision: str) -> None:
    """Checks that CTranslate2 can decode with a model, these options and a precision.

    Raises:
        T2TError: it is not installed, or it, or the device, does not support one of them.
    """
    capabilities.check(options.asked(), capabilities.CTRANSLATE2, *capabilities.places_of(hparams))
    check_convertible(hparams)
    device = find_device()
    import ctranslate2

    supported = ctranslate2.get_supported_compute_types(device)
    if precision not in supported:
        offered = " or ".join(kind for kind in PRECISIONS if kind in supported)
        raise T2TError(f"CTranslate2 does not compute in {precision} on this {device}: use {offered}")


def find_device() -> str:
    """Returns the device that CTranslate2 computes on: `GPU` if there is one, else `CPU`.

    Raises:
        T2TError: CTranslate2 is not installed.
    """
    ctranslate2 = require("ctranslate2", "engine=ctranslate2")
    return GPU if ctranslate2.get_cuda_device_count() else CPU


def num_parallel_batches() -> int:
    """Returns how many batches to decode at the same time: one on a GPU, else as many as there are cores."""
    return 1 if find_device() == GPU else cores()


def _to_pieces(ids: Sequence[int], pieces: Sequence[str]) -> list[str]:
    return [pieces[token] for token in until_eos(ids)]


def _best(hypotheses: list[Hypothesis], terms: Mapping[str, float], n: int) -> list[Hypothesis]:
    """Returns the n best hypotheses, best first; cut ones only where none is finished."""
    finished = [hypothesis for hypothesis in hypotheses if hypothesis.finished]
    return sorted(finished or hypotheses, key=lambda found: -found.score(terms))[:n]


@contextmanager
def _errors() -> Iterator[None]:
    """Turns errors of CTranslate2 into `T2TError`."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise T2TError(f"CTranslate2: {error}") from error
