"""One way of text through a model, whatever computes it: lines, its inputs, its outputs, and lines again."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol, overload

from t2t_revival.data.vocabulary.sentencepiece import EOS, until_eos
from t2t_revival.data.word_alignment import Link
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.addons import Constraints, Found, MarkedLines, Outputs, TermCheck, addon
from t2t_revival.decoding.batching import DecodingProgress, MapBatches, OnProgress
from t2t_revival.decoding.capabilities import Place
from t2t_revival.decoding.details import Details
from t2t_revival.decoding.notes import unchecked
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import MISSING, Candidate, Translation
from t2t_revival.decoding.paragraphs import Paragraph, join_all, split_inputs
from t2t_revival.decoding.preprocessor import (
    LINE_ENDS,
    OnTruncation,
    Truncation,
    check_prefixes,
    check_unicode,
    model_inputs,
    plain,
)
from t2t_revival.errors import T2TError
from t2t_revival.utils.texts import is_blank, shown, texts_of
from t2t_revival.utils.unicode_forms import NFC, normalized, not_in

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
    from t2t_revival.problems.problem import Problem

Candidates = Mapping[int, Sequence[Candidate]]  # of inputs, by index; best first, at least one


@dataclass(frozen=True)
class Request:
    """Inputs of a model, and how to decode them.

    Attributes:
        texts: as the model reads them, with their tags.
        options: how to decode.
        n: number of outputs of each.
        first_number: of the first input, in errors and as a seed of its samples.
        prefixes: beginnings of the outputs; `None` forces nothing.
        constraints: of the outputs, by index.
    """

    texts: list[str]
    options: DecodeHParams
    n: int
    first_number: int
    prefixes: Sequence[str] | None
    constraints: Mapping[int, Constraints]


class Search(Protocol):
    """The decoding of a request.

    Attributes:
        windows: `batching.map_batches` with the inputs, called with the other arguments.
    """

    windows: MapBatches

    def find(self, indices: Sequence[int]) -> Candidates:
        """Decodes inputs that are not blank."""

    def find_free(self, indices: Sequence[int]) -> Candidates:
        """Decodes inputs without constraints."""

    def find_bound(self, constraints: Mapping[int, Constraints]) -> Candidates:
        """Decodes inputs with other constraints than theirs, but for inputs that cannot have them."""

    def annotate(
        self, outputs: Sequence[tuple[int, str, Sequence[int]]], for_terms: bool
    ) -> Sequence[Details]:
        """Returns the details of outputs, given by the index of the input, the text and its tokens.

        Those by which terms are checked have the word alignment.
        """


class LineTranslator(ABC):
    """Text in, text out: what is common to models of this process and exported ones.

    Attributes:
        options: how to decode.
        problem: pre- and postprocesses text. `None` leaves it as it is.
        places: what decodes, and the kinds that the model is of: all must support what a call asks for.
        repeats_texts: whether lists may have a text twice, as candidates that are chosen from elsewhere.
    """

    repeats_texts = False
    options: DecodeHParams
    problem: Problem | None
    places: Sequence[Place]

    @property
    @abstractmethod
    def vocabularies(self) -> Vocabularies:
        """Vocabularies of source and target."""

    @property
    @abstractmethod
    def max_length(self) -> int:
        """Maximum number of tokens of an input, EOS included; longer ones are cut."""

    @abstractmethod
    def form_for(self, lines: Sequence[str]) -> str:
        """Returns Unicode's form in which lines are like the training data; "" if any is right."""

    def other_form(self, lines: Sequence[str]) -> str:
        """Describes for people how many lines are read otherwise than in the form of the training data."""
        form = "" if self.options.unicode_form or all(map(str.isascii, lines)) else self.form_for(lines)
        if not (form and (others := not_in(form, lines))):
            return ""
        encode = self.vocabularies.inputs.encode
        number = sum(encode(line) != encode(normalized(line, form)) for line in others)
        if not number:
            return ""
        lines_are = f"{number:,} lines are" if number > 1 else "1 line is"
        kind = "composed" if form == NFC else "decomposed"
        return (
            f"{lines_are} not in Unicode's {kind} form ({form.upper()}), unlike the training data: give "
            f"--normalize={form}, or unicode_form={form} as a setting of decoding"
        )

    @property
    @abstractmethod
    def why_unchecked(self) -> str:
        """The reason for which terms are not checked; empty if they are."""

    @property
    def num_outputs(self) -> int:
        """The number of outputs of a line, where a call does not say another."""
        return self.options.outputs

    @property
    @abstractmethod
    def num_columns(self) -> int:
        """The number of outputs of a line that is not blank, those that do not exist included."""

    @abstractmethod
    def origin(self, has_terms: bool = False) -> dict[str, Any]:
        """Returns everything that outputs depend on, but for the lines, which may have terms."""

    @abstractmethod
    def open(self, request: Request, on_truncation: OnTruncation) -> Search:
        """Checks and encodes a request.

        Raises:
            T2TError: an input or a prefix is no valid Unicode, a prefix is too long or has no input, or a
                constraint cannot be met.
        """

    @abstractmethod
    def align(self, pairs: Sequence[tuple[str, str]]) -> Iterable[Sequence[Link]]:
        """Returns the word alignments of inputs and outputs."""

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
        texts = [outputs[0].text for outputs in self.nbest(lines, n=1, on_truncation=on_truncation)]
        return texts[0] if isinstance(lines, str) else texts

    def nbest(
        self,
        lines: str | Iterable[str],
        n: int | None = None,
        on_truncation: OnTruncation | None = None,
        preprocessed: bool = False,
        prefixes: Sequence[str] | None = None,
        first_line: int = 1,
        constraints: Sequence[Constraints | None] | None = None,
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
        constraints: Sequence[Constraints | None] | None = None,
        skip: int = 0,
    ) -> Iterator[list[Translation]]:
        """Checks all lines, and returns an iterator over the outputs of each, in input order.

        They are the best ones whose texts differ, or drawn ones with sampling. Batches hold
        `options.batch_size` input tokens, of lines of similar length in windows of consecutive lines, whose
        outputs come together. A blank line has one empty output. Line ends in an output become spaces. Where
        the model has alignment heads, terms of constraints are checked, and tried once more without what the
        line has for them otherwise; see `Translation.unaligned`.

        Args:
            lines: source text; a line end in a line counts as a space.
            n: outputs per line, at most `options.beam_size`; fewer if the search finishes fewer whose texts
                differ. `None` takes the number from the options.
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
            T2TError: a line or prefix is no string or no valid Unicode, a prefix is too long, has no
                source, or n is out of range; or as `constraints_of`, `capabilities.check` and `open`.
        """
        options = self.options
        if n is not None and not (isinstance(n, Integral) and 1 <= n <= options.beam_size):
            raise T2TError(f"n={shown(n)} must be between 1 and beam_size={options.beam_size}")
        outputs = options.outputs if n is None else n
        lines = texts_of(lines, first=first_line)
        prefixes = None if prefixes is None else texts_of(prefixes, "prefixes", first_line, optional=True)
        prefixes = prefixes if prefixes and any(prefixes) else None
        bound: Mapping[int, Constraints] = {}
        if constraints is not None:
            bound = addon("constraints")(constraints, len(lines), first_line)
        of_call = {"n": outputs > 1, "prefixes": prefixes, "constraints": bound}
        capabilities.check(options.asked(of_call), *self.places)
        check_unicode(lines, first_line)
        if not on_truncation:
            unmet = unchecked(bound.values(), self.why_unchecked) if bound else ""
            for note in filter(None, (unmet, self.other_form(lines))):
                warnings.warn(note, stacklevel=3)
        check_unicode(prefixes or (), first_line)
        texts, marked, paragraphs = plain(lines, options), None, None
        if options.markup:
            marked = addon("markup")(texts, options.markup, self.vocabularies.inputs.tags)
            texts = marked.texts
        texts = model_inputs(texts, self.problem, options, preprocessed)
        ends: Sequence[int] = range(1, len(texts) + 1)  # of lines, in inputs
        if options.split_sentences:
            paragraphs = split_inputs(texts, self.vocabularies.inputs, self.problem, self.max_length)
            parts = [paragraph.texts or [""] for paragraph in paragraphs]
            ends, texts = [*accumulate(map(len, parts))], [*chain.from_iterable(parts)]

        if prefixes:
            check_prefixes(prefixes, texts, first_line)

        def note_cut(cut: Truncation) -> None:
            line = first_line + bisect_right(ends, cut.number - first_line)
            (on_truncation or warn_of_truncation)(replace(cut, number=line))

        def show(progress: DecodingProgress) -> None:
            if on_progress:
                on_progress(replace(progress, done=bisect_right(ends, progress.done), total=len(lines)))

        request = Request(texts, options, n or self.num_outputs, first_line, prefixes, bound)
        check: TermCheck | None = None
        if any(one.terms for one in bound.values()) and not self.why_unchecked:
            check = addon("check_terms").of(bound, lines, texts, options.tag)
        repeats = options.samples or self.repeats_texts
        decode = LineDecoder(self.open(request, note_cut), request, self.problem, check, repeats)
        start = ends[skip - 1] if skip else 0
        windows = decode.search.windows(decode, on_progress=show, ends=set(ends), skip=start)
        return self._lines_of(windows, skip, ends, paragraphs, marked)

    def _lines_of(
        self,
        windows: Iterable[tuple[range, list[list[Translation]]]],
        skip: int,
        ends: Sequence[int],
        paragraphs: list[Paragraph] | None,
        marked: MarkedLines | None,
    ) -> Iterator[list[Translation]]:
        """Yields the outputs of lines but the first, their sentences joined and their markup put back."""
        for window, outputs in windows:
            first, end = (bisect_right(ends, index) for index in (window.start, window.stop))
            if paragraphs or marked:
                best = [texts[0] for texts in outputs]
                if paragraphs:
                    best = join_all(paragraphs[first:end], best)
                if marked:
                    best = marked.put_back(range(first, end), best, self.align)
                outputs = [[output] for output in best]
            yield from outputs[max(skip - first, 0) :]


@dataclass(frozen=True)
class LineDecoder:
    """Decodes batches of a request, from inputs to outputs as people read them.

    Attributes:
        search: finds outputs.
        request: the inputs, and how to decode.
        problem: postprocesses outputs.
        check: of terms; `None` for none.
        repeats: whether a list may have a text twice.
    """

    search: Search
    request: Request
    problem: Problem | None
    check: TermCheck | None
    repeats: bool

    def __call__(self, batch: list[int]) -> list[list[Translation]]:
        """Returns the outputs of some inputs, given by index."""
        outputs = {index: [Translation("", 0.0)] for index in batch}
        indices = [index for index in batch if not is_blank(self.request.texts[index])]
        candidates = self.search.find(indices) if indices else {}
        outputs |= self._finished(candidates)
        if self.check:
            outputs |= self._checked(self.check, candidates)
        return [self._marked(index, outputs[index]) for index in batch]

    def _finished(self, candidates: Candidates, for_terms: bool = False) -> dict[int, list[Translation]]:
        """Returns the outputs of inputs, chosen and postprocessed, with their details."""
        chosen = {index: self._chosen(index, each) for index, each in candidates.items()}
        outputs = {index: [output for _, output in each] for index, each in chosen.items()}
        if not (self.request.options.details or for_terms):
            return outputs
        places = [
            (index, place)
            for index, each in outputs.items()
            for place, output in enumerate(each)
            if output.score > MISSING
        ]
        asked = [(at, outputs[at][place].text, chosen[at][place][0].ids) for at, place in places]
        for (at, place), details in zip(places, self.search.annotate(asked, for_terms), strict=True):
            outputs[at][place] = replace(outputs[at][place], details=details)
        return outputs

    def _chosen(self, index: int, candidates: Sequence[Candidate]) -> list[tuple[Candidate, Translation]]:
        """Returns the outputs of an input: the best of each text, and samples as they were drawn."""
        options = self.request.options
        if options.mbr:
            language = self.problem.target_lang if self.problem else ""
            candidates = addon("choose")(candidates, options.mbr, language)
        chosen: dict[str | int, tuple[Candidate, Translation]] = {}
        for place, candidate in enumerate(candidates):
            if len(chosen) < self.request.n:
                output = self._output(index, candidate)
                chosen.setdefault(place if self.repeats else output.text, (candidate, output))
        return [*chosen.values()]

    def _output(self, index: int, candidate: Candidate) -> Translation:
        text, repaired = candidate.text, False
        if self.problem and candidate.score > MISSING:
            text, repaired = self.problem.postprocess(self.request.texts[index], text)
        return Translation(text, candidate.score, repaired, candidate.truncated, cut=candidate.cut)

    def _checked(self, check: TermCheck, candidates: Candidates) -> Outputs:
        """Returns the outputs of the lines with terms."""
        outputs = check(
            self._finished({at: each for at, each in candidates.items() if at in check.lines}, True),
            lambda indices: self._finished(self.search.find_free(indices), True),
            lambda constraints: self._finished(self.search.find_bound(constraints), True),
        )
        if self.request.options.details:
            return outputs
        return {at: [replace(output, details=None) for output in each] for at, each in outputs.items()}

    def _marked(self, index: int, outputs: list[Translation]) -> list[Translation]:
        """Returns outputs with the phrases that they lack or should not have."""
        constraints = self.request.constraints.get(index)
        if constraints is None:
            return outputs
        return [
            replace(
                output, missing=constraints.missing(output.text), present=constraints.present(output.text)
            )
            for output in outputs
        ]


def as_candidates(found: Found, vocabulary: TextEncoder, truncated: bool) -> list[Candidate]:
    """Returns the outputs of an input as text; of NaN in the weights, an empty one that is missing."""
    return [
        Candidate(vocabulary.decode(ids).translate(LINE_ENDS), score, trimmed(ids), truncated, EOS not in ids)
        for ids, score in zip(*found, strict=True)
        if score > MISSING
    ] or [Candidate("", MISSING, truncated=truncated)]


def trimmed(ids: list[int]) -> list[int]:
    """Returns ids up to their end, EOS included; of an output that was cut, without padding."""
    return ids[: ids.index(EOS) + 1] if EOS in ids else until_eos(ids)


def warn_of_truncation(truncation: Truncation) -> None:
    """Warns of an input that is too long."""
    warnings.warn(str(truncation), stacklevel=5)
