"""`ServedTranslator`: an exported model, wherever it runs; text in, text out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from t2t_revival.data.vocabulary.text_encoder import symbol
from t2t_revival.data.word_alignment import Link
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.addons import Attempt, ConstrainedSearch, Found, addon
from t2t_revival.decoding.details import Details
from t2t_revival.decoding.lines.batching import MIN_TOKENS, BatchPlan
from t2t_revival.decoding.lines.calls import Call, run
from t2t_revival.decoding.lines.line_decoder import Candidates, Request, as_candidates
from t2t_revival.decoding.lines.notes import OF_EXPORT
from t2t_revival.decoding.lines.pipeline import LineTranslator
from t2t_revival.decoding.lines.preprocessor import OnTruncation, Preprocessor, Truncation, plain
from t2t_revival.decoding.options import MAX_CANDIDATES, SETTINGS, DecodeHParams, Role
from t2t_revival.decoding.outputs import MISSING
from t2t_revival.errors import T2TError
from t2t_revival.hparams.hparams import parse_overrides
from t2t_revival.serving.client import BATCH_SIZE, Model, outputs_of
from t2t_revival.serving.description import LIMITS, Description
from t2t_revival.serving.signatures import (
    DEFAULT,
    NO_OUTPUT,
    WITH_PREFIXES,
    WITH_TABLES,
    option_inputs,
    signature_of,
)
from t2t_revival.utils.unicode_forms import NFC, not_in

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies
    from t2t_revival.problems.problem import Problem

SEARCH = {  # settings of a search; without any of them, an export's own hold
    name for name, about in SETTINGS.items() if about.request in (Role.INPUT, Role.CHOICE)
}

USUAL = DecodeHParams()
SPLIT = "; --split_sentences translates each sentence for itself"


class ServedTranslator(LineTranslator):
    """An exported model, wherever it runs: translates lines, one output line for each.

    Args:
        model: the exported model.
        options: how to decode.
        problem: pre- and postprocesses text. `None` leaves it as it is.
        batch_size: inputs of a request.
        as_exported: whether the search has the settings of the export, where a line has neither constraints
            nor a forced beginning.
        description: what the model tells of itself; `None` asks it when that is needed.
        name: of the model at its server, on which outputs depend.

    Raises:
        T2TError: a setting is not one of requests.

    Example:
        translator = ServedTranslator(connect("localhost:8500", "translate_ende"))
        translator.translate(["The dog sleeps.", ""])    # ["Der Hund schläft.", ""]
    """

    def __init__(
        self,
        model: Model,
        options: DecodeHParams | None = None,
        problem: Problem | None = None,
        batch_size: int = BATCH_SIZE,
        as_exported: bool = True,
        description: Description | None = None,
        name: str = "",
    ) -> None:
        self.predict = model.predict
        self.model, self.problem, self.batch_size, self.as_exported = model, problem, batch_size, as_exported
        self.options, self._description, self._name = options or USUAL, description, name
        if options:
            usual = DecodeHParams.from_problem(problem) if problem else USUAL
            capabilities.check(options.asked(beside=usual), capabilities.REQUEST)
        self.places = [capabilities.PARSER] if problem and problem.separates_words else []
        self.width = 1  # outputs of a line in the latest response

    @cached_property
    def description(self) -> Description:
        """The model as it describes itself."""
        return self._description or run(Description.asked(), self.predict)

    @property
    def vocabularies(self) -> Vocabularies:
        """Vocabularies of source and target, which the model tells."""
        return self.description.vocabularies

    @property
    def max_length(self) -> int:
        """Maximum number of tokens of an input, EOS included, which the model tells."""
        return self.description.max_length

    def form_for(self, lines: Sequence[str]) -> str:
        """Returns what the model tells, if it can; it is asked only for lines that are not in NFC."""
        if not not_in(NFC, lines):
            return ""
        try:
            return self.description.unicode_form
        except T2TError:
            return ""

    @property
    def why_unchecked(self) -> str:
        """The reason for which terms are not checked; empty if they are."""
        return "" if self.description.aligns else OF_EXPORT

    @property
    def num_outputs(self) -> int:
        """The number of outputs of a line, where a call does not say another; at most, as exported."""
        return MAX_CANDIDATES if self.as_exported else self.options.outputs

    @property
    def num_columns(self) -> int:
        """The number of outputs of a line that is not blank, those that do not exist included."""
        return self.width if self.as_exported else self.options.outputs

    def open(self, request: Request, on_truncation: OnTruncation) -> ServedSearch:
        """Opens a request; which inputs are too long is known when they are decoded.

        Raises:
            T2TError: as `ConstrainedLines`.
        """
        return ServedSearch(self, request, on_truncation)

    def origin(self, has_terms: bool = False) -> dict[str, Any]:
        """Returns everything that outputs depend on, but for lines and the model that a server has then."""
        return {
            "model": [self.model.where, self._name],
            "problem": self.problem and self.problem.name,
            "as exported": self.as_exported,
            "lines of a request": self.batch_size,
            **dataclasses.asdict(self.options),
        }


class ServedSearch:
    """The decoding of a request by an exported model; see `Search`.

    Args:
        translator: has the model.
        request: what is decoded.
        on_truncation: called for each input that is too long.
    """

    rounds_by_batch = False

    def __init__(self, translator: ServedTranslator, request: Request, on_truncation: OnTruncation) -> None:
        self._translator, self._where, self._request = translator, translator.model.where, request
        self._on_truncation = on_truncation
        n = translator.options.outputs if translator.as_exported else request.n
        wanted = min(n + request.options.spare_of(n), request.options.beam_size)
        self._n = request.options.candidates_of(wanted)  # of a request with settings
        self._cut: set[int] = set()
        lengths, size = [MIN_TOKENS] * len(request.pieces), MIN_TOKENS * translator.batch_size
        self.plan = BatchPlan(lengths, size, [piece.line for piece in request.pieces], sizes=(1,))
        self.constrained: ConstrainedSearch | None = None
        if request.constraints:
            self.constrained = self._constrained(translator.description)

    def _constrained(self, description: Description) -> ConstrainedSearch:
        """Encodes the inputs, as their tables need it; their search has the export's own limits."""
        limits = {name: getattr(description, name) for name in LIMITS}
        options = replace(self._request.options, **limits, tag="")
        first = self._request.first_number
        preprocessor = Preprocessor(description.vocabularies, None, options, description.max_length, first)
        sources = preprocessor.sources(self._request.pieces, self._on_truncation)
        self._cut |= {index for index, source in enumerate(sources) if source.is_cut}
        ids, request = [source.ids for source in sources], replace(self._request, options=options)
        return addon("constrained_search")(request, ids, description.spelling, self._bound)

    async def free(self, indices: Sequence[int]) -> Candidates:
        """Decodes inputs by one call."""
        request, options = self._request, self._request.options
        inputs: dict[str, Sequence[Any]] = {"inputs": [request.pieces[index].text for index in indices]}
        if request.prefixes:
            signature = WITH_PREFIXES
            inputs |= option_inputs(options, len(indices), self._n)
            inputs["prefixes"] = plain((request.prefixes[index] for index in indices), options)
        elif self._translator.as_exported:
            signature = DEFAULT
        else:
            signature = signature_of(options)
            inputs |= option_inputs(options, len(indices), self._n)
        outputs = outputs_of(await Call(signature, inputs), len(indices), self._where)
        if signature == DEFAULT:
            self._translator.width = max(map(len, outputs), default=1)
        found = dict(zip(indices, outputs, strict=True))
        for index, candidates in found.items():
            if candidates[0].truncated and index not in self._cut:
                self._cut.add(index)
                way_out = "" if capabilities.PARSER in self._translator.places else SPLIT
                line = request.first_number + request.pieces[index].line
                self._on_truncation(Truncation(line, way_out=way_out))
        return {index: [each for each in found[index] if each.score > MISSING] for index in found}

    async def _bound(self, attempt: Attempt) -> dict[int, Found]:
        options = self._request.options
        texts = [self._request.pieces[index].text for index in attempt.indices]
        inputs = {
            "inputs": texts,
            **option_inputs(options, len(texts), self._n),
            "tables": addon("pack_tables")(attempt.tables),
        }
        response = await Call(WITH_TABLES, inputs)
        scores = [[score if score > NO_OUTPUT else MISSING for score in row] for row in response["scores"]]
        return dict(zip(attempt.indices, zip(response["ids"], scores, strict=True), strict=True))

    def candidates(self, found: Mapping[int, Found]) -> Candidates:
        """Returns the outputs that searches with constraints have found, as text."""
        vocabulary = self._translator.vocabularies.targets
        return {index: as_candidates(each, vocabulary, index in self._cut) for index, each in found.items()}

    async def annotate(
        self, outputs: Sequence[tuple[int, str, Sequence[int]]], for_terms: bool
    ) -> Sequence[Details]:
        """Returns details of outputs, by one call; of the tokens that the vocabulary splits them into."""
        from t2t_revival.serving.details import query_details

        options, pieces = self._request.options, self._request.pieces
        tag = symbol(options.tag)
        pairs = [(pieces[index].text.removeprefix(tag), text) for index, text, _ in outputs]
        aligns = for_terms or bool(options.alignments)
        return await query_details(self._where, pairs, options.alternatives, aligns, options.tag)

    async def align(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Sequence[Link]]:
        """Returns the word alignments of lines and outputs.

        Raises:
            T2TError: the model was exported without alignment heads.
        """
        from t2t_revival.serving.details import query_details

        size, tag, links = self._translator.batch_size, self._request.options.tag, list[Sequence[Link]]()
        for start in range(0, len(pairs), size):
            details = await query_details(self._where, pairs[start : start + size], aligns=True, tag=tag)
            links += [one.links for one in details]
        return links


def parse_options(text: str, problem: Problem | None) -> tuple[DecodeHParams, bool]:
    """Returns the settings of requests, and whether none of them is of the search.

    Raises:
        T2TError: a setting is wrong, or is not one of requests.
    """
    usual = DecodeHParams.from_problem(problem) if problem else USUAL
    options = DecodeHParams.parse(text, dataclasses.asdict(usual))
    capabilities.check(options.asked(beside=usual), capabilities.REQUEST)
    if options.tokenized and not problem:
        raise T2TError("decode_hparams: tokenized is for parsing: give --problem too")
    types = {field.name: field.type for field in dataclasses.fields(DecodeHParams)}
    return options, parse_overrides(text, types).keys().isdisjoint(SEARCH)
