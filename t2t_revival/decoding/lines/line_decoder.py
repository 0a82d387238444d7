"""`LineDecoder`: inputs of a model, its outputs, and the lines that people read; whatever computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from t2t_revival.data.vocabulary.sentencepiece import EOS, until_eos
from t2t_revival.data.word_alignment import Link
from t2t_revival.decoding.addons import (
    ConstrainedSearch,
    Constraints,
    Found,
    MarkedLines,
    Outputs,
    TermCheck,
    addon,
)
from t2t_revival.decoding.details import Details
from t2t_revival.decoding.lines.batching import BatchPlan
from t2t_revival.decoding.lines.paragraphs import Paragraph, join_outputs
from t2t_revival.decoding.lines.preprocessor import LINE_ENDS, Piece
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import MISSING, Candidate, Translation
from t2t_revival.utils.texts import is_blank

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder
    from t2t_revival.problems.problem import Problem

Candidates = Mapping[int, Sequence[Candidate]]  # of inputs, by index; best first, at least one


@dataclass(frozen=True)
class Request:
    """Inputs of a model, and how to decode them.

    Attributes:
        pieces: of lines, in their order.
        options: how to decode.
        n: number of outputs of each.
        first_number: of the first line, in errors, and of the first input as a seed of its samples.
        prefixes: beginnings of the outputs; `None` forces nothing.
        constraints: of the outputs, by index.
    """

    pieces: Sequence[Piece]
    options: DecodeHParams
    n: int
    first_number: int
    prefixes: Sequence[str] | None
    constraints: Mapping[int, Constraints]


class Search(Protocol):
    """A finder of outputs of a request; its methods may await a `Call`.

    Attributes:
        plan: the batches in which its inputs are decoded.
        constrained: searches for outputs of the inputs with constraints; `None` if there are none.
        rounds_by_batch: whether scores depend on a batch in their last bits; inputs without constraints are
            then decoded beside those with constraints, as they would be without them.
    """

    plan: BatchPlan
    constrained: ConstrainedSearch | None
    rounds_by_batch: bool

    async def free(self, indices: Sequence[int]) -> Candidates:
        """Decodes inputs that are not blank, without constraints."""

    def candidates(self, found: Mapping[int, Found]) -> Candidates:
        """Returns what a search with constraints has found, as text."""

    async def annotate(
        self, outputs: Sequence[tuple[int, str, Sequence[int]]], for_terms: bool
    ) -> Sequence[Details]:
        """Returns the details of outputs, given by the index of the input, the text and its tokens.

        Those by which terms are checked have the word alignment.
        """

    async def align(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Sequence[Link]]:
        """Returns the word alignments of lines and outputs."""


@dataclass(frozen=True)
class LineDecoder:
    """Decodes a request, from inputs to outputs as people read them.

    Attributes:
        search: finds outputs.
        request: the inputs, and how to decode.
        problem: postprocesses outputs.
        check: of terms; `None` for none.
        repeats: whether a list may have a text twice.
        paragraphs: the lines, where they are split into sentences.
        marked: the lines, where their markup is put back.
    """

    search: Search
    request: Request
    problem: Problem | None
    check: TermCheck | None
    repeats: bool
    paragraphs: list[Paragraph] | None
    marked: MarkedLines | None

    async def decode(self, batch: Sequence[int]) -> list[list[Translation]]:
        """Returns the outputs of some inputs, given by index."""
        outputs = {index: [Translation("", 0.0)] for index in batch}
        indices = [index for index in batch if not is_blank(self.request.pieces[index].text)]
        candidates = await self._candidates(indices) if indices else {}
        outputs |= await self._finished(candidates)
        if self.check:
            outputs |= await self._checked(self.check, candidates)
        return [self._marked(index, outputs[index]) for index in batch]

    async def lines(self, lines: range, outputs: Sequence[list[Translation]]) -> Sequence[list[Translation]]:
        """Returns the outputs of lines, given those of their inputs: sentences joined, markup put back."""
        if not (self.paragraphs or self.marked):
            return outputs
        best = [texts[0] for texts in outputs]
        if self.paragraphs:
            left = iter(best)
            best = [
                join_outputs(one, [*islice(left, len(one.texts) or 1)])
                for one in self.paragraphs[lines.start : lines.stop]
            ]
        if self.marked:
            best = await self.marked.put_back(lines, best, self.search.align)
        return [[output] for output in best]

    async def all_lines(self) -> list[list[Translation]]:
        """Returns the outputs of all lines, window by window."""
        plan, found = self.search.plan, list[list[Translation]]()
        for window in plan.windows():
            lines = range(plan.line_of(window.start), plan.line_of(window.stop))
            found += await self.lines(lines, await self.decode(window))
        return found

    async def _candidates(self, indices: Sequence[int]) -> Candidates:
        """Decodes inputs that are not blank."""
        constrained = self.search.constrained
        if constrained is None:
            return await self.search.free(indices)
        free = [index for index in indices if index not in constrained]
        if free and self.search.rounds_by_batch:
            free = [*indices]
        found = await self.search.free(free) if free else {}
        return {**found, **self.search.candidates(await constrained.search(indices))}

    async def _finished(
        self, candidates: Candidates, for_terms: bool = False
    ) -> dict[int, list[Translation]]:
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
        for (at, place), details in zip(places, await self.search.annotate(asked, for_terms), strict=True):
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
            text, repaired = self.problem.postprocess(self.request.pieces[index].text, text)
        return Translation(text, candidate.score, repaired, candidate.truncated, cut=candidate.cut)

    async def _checked(self, check: TermCheck, candidates: Candidates) -> Outputs:
        """Returns the outputs of the lines with terms."""

        async def free(indices: list[int]) -> Outputs:
            return await self._finished(await self.search.free(indices), True)

        async def forced(constraints: Mapping[int, Constraints]) -> Outputs:
            assert self.search.constrained
            found = await self.search.constrained.search_again(constraints)
            return await self._finished(self.search.candidates(found), True)

        own = {at: each for at, each in candidates.items() if at in check.lines}
        outputs = await check(await self._finished(own, True), free, forced)
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
