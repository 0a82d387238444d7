"""One way of text through a model, whatever computes it: lines, their outputs, and lines again."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, overload

from t2t_revival.decoding import capabilities
from t2t_revival.decoding.addons import Constraints, TermCheck, addon
from t2t_revival.decoding.capabilities import Place
from t2t_revival.decoding.lines.batching import BatchPlan, OnProgress, Result, map_batches
from t2t_revival.decoding.lines.calls import Predict, run
from t2t_revival.decoding.lines.line_decoder import LineDecoder, Request, Search
from t2t_revival.decoding.lines.notes import unchecked
from t2t_revival.decoding.lines.paragraphs import split_inputs
from t2t_revival.decoding.lines.preprocessor import (
    OnTruncation,
    Piece,
    Truncation,
    check_prefixes,
    check_unicode,
    model_inputs,
    pieces_of,
    plain,
)
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import Translation
from t2t_revival.errors import T2TError
from t2t_revival.utils.texts import shown, texts_of
from t2t_revival.utils.unicode_forms import NFC, normalized, not_in

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies
    from t2t_revival.problems.problem import Problem


@dataclass(frozen=True)
class Lines:
    """Lines to translate.

    Attributes:
        texts: source text; a line end in a line counts as a space.
        n: outputs per line, at most `options.beam_size`; fewer if the search finishes fewer whose texts
            differ. `None` takes the number from the options.
        preprocessed: whether lines are the model's inputs already, as those of a split are.
        prefixes: beginning of the outputs of each line; "" or `None` forces nothing. The forced tokens are
            those of the vocabulary's segmentation of the prefix. In T2T's vocabularies the last word ends
            there; in others the model may continue it, but has rarely seen it segmented like this.
        first: number of the first line, for messages and as a seed of its samples.
        constraints: phrases that the outputs of each line must have or must not have; `None` has none.
    """

    texts: Sequence[str]
    n: int | None = None
    preprocessed: bool = False
    prefixes: Sequence[str] | None = None
    first: int = 1
    constraints: Sequence[Constraints | None] | None = None


class LineTranslator(ABC):
    """Text in, text out: what is common to models of this process and exported ones.

    Attributes:
        options: how to decode.
        problem: pre- and postprocesses text. `None` leaves it as it is.
        places: what decodes, and the kinds that the model is of: all must support what a call asks for.
        repeats_texts: whether lists may have a text twice, as candidates that are chosen from elsewhere.
        predict: what answers calls of an exported model; `None` where the engine is in this process.
    """

    repeats_texts = False
    predict: Predict | None = None
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
    def num_columns(self) -> int:
        """The number of outputs of a line that is not blank, those that do not exist included."""
        return self.options.outputs

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

    def map_batches(
        self,
        function: Callable[[list[int]], list[Result]],
        plan: BatchPlan,
        on_progress: OnProgress | None = None,
        skip: int = 0,
    ) -> Iterator[tuple[range, list[Result]]]:
        """Calls a function with batches of inputs, one by one; see `batching.map_batches`."""
        return map_batches(function, plan, 1, on_progress, skip)

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
        """Returns the outputs of each line in input order; a single string is one line. See `Lines`."""
        texts = texts_of([lines] if isinstance(lines, str) else lines, first=first_line)
        return [
            *self.iterate(Lines(texts, n, preprocessed, prefixes, first_line, constraints), on_truncation)
        ]

    def iterate(
        self,
        lines: Iterable[str] | Lines,
        on_truncation: OnTruncation | None = None,
        on_progress: OnProgress | None = None,
        skip: int = 0,
    ) -> Iterator[list[Translation]]:
        """Checks all lines, and returns an iterator over the outputs of each, in input order.

        They are the best ones whose texts differ, or drawn ones with sampling. Batches hold
        `options.batch_size` input tokens, of lines of similar length in windows of consecutive lines, whose
        outputs come together. A blank line has one empty output. Line ends in an output become spaces. Where
        the model has alignment heads, terms of constraints are checked, and tried once more without what the
        line has for them otherwise; see `Translation.unaligned`.

        Args:
            lines: texts, or `Lines` with more than texts.
            on_truncation: called for each line that is too long. `None` warns, also that nobody checks terms.
            on_progress: called after each batch.
            skip: number of lines at the beginning that have no outputs here; those of the others are the
                same, to the bit.

        Raises:
            T2TError: a line or prefix is no string or no valid Unicode, a prefix is too long, has no
                source, or n is out of range; or as `constraints_of`, `capabilities.check` and `open`.
        """
        asked = lines if isinstance(lines, Lines) else Lines(texts_of(lines))
        decoder = self.decoder(asked, on_truncation)
        return self._outputs(decoder, on_progress, skip)

    def _outputs(
        self, decoder: LineDecoder, on_progress: OnProgress | None, skip: int
    ) -> Iterator[list[Translation]]:
        """Yields the outputs of lines but the first."""

        def decode(batch: list[int]) -> list[list[Translation]]:
            return run(decoder.decode(batch), self.predict)

        for lines, outputs in self.map_batches(decode, decoder.search.plan, on_progress, skip):
            yield from run(decoder.lines(lines, outputs), self.predict)[max(skip - lines.start, 0) :]

    def decoder(self, asked: Lines, on_truncation: OnTruncation | None) -> LineDecoder:
        """Checks and encodes lines; see `iterate` for arguments and errors."""
        options, first, n = self.options, asked.first, asked.n
        if n is not None and not (isinstance(n, Integral) and 1 <= n <= options.beam_size):
            raise T2TError(f"n={shown(n)} must be between 1 and beam_size={options.beam_size}")
        outputs = options.outputs if n is None else n
        lines = texts_of(asked.texts, first=first)
        prefixes = asked.prefixes
        prefixes = None if prefixes is None else texts_of(prefixes, "prefixes", first, optional=True)
        prefixes = prefixes if prefixes and any(prefixes) else None
        bound: Mapping[int, Constraints] = {}
        if asked.constraints is not None:
            bound = addon("constraints")(asked.constraints, len(lines), first)
        of_call = {"n": outputs > 1, "prefixes": prefixes, "constraints": bound}
        capabilities.check(options.asked(of_call), *self.places)
        check_unicode(lines, first)
        if not on_truncation:
            unmet = unchecked(bound.values(), self.why_unchecked) if bound else ""
            for note in filter(None, (unmet, self.other_form(lines))):
                warnings.warn(note, stacklevel=4)
        check_unicode(prefixes or (), first)
        texts, marked, paragraphs = plain(lines, options), None, None
        if options.markup:
            marked = addon("markup")(texts, options.markup, self.vocabularies.inputs.tags)
            texts = marked.texts
        texts = model_inputs(texts, self.problem, options, asked.preprocessed)
        pieces = pieces_of(texts)
        if options.split_sentences:
            paragraphs = split_inputs(texts, self.vocabularies.inputs, self.problem, self.max_length)
            pieces = [Piece(at, text) for at, one in enumerate(paragraphs) for text in one.texts or [""]]
        if prefixes:
            check_prefixes(prefixes, texts, first)
        check: TermCheck | None = None
        if any(one.terms for one in bound.values()) and not self.why_unchecked:
            check = addon("check_terms").of(bound, lines, texts, options.tag)
        request = Request(pieces, options, n or self.num_outputs, first, prefixes, bound)
        search = self.open(request, on_truncation or warn_of_truncation)
        repeats = options.samples or self.repeats_texts
        return LineDecoder(search, request, self.problem, check, repeats, paragraphs, marked)


def warn_of_truncation(truncation: Truncation) -> None:
    """Warns of an input that is too long."""
    warnings.warn(str(truncation), stacklevel=5)
