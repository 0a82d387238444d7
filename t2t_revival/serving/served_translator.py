"""Translation by an exported model, with a problem's processing of inputs and outputs."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from t2t_revival.data.tags import tagged
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import Translation
from t2t_revival.decoding.paragraphs import halve, join_outputs, leading_tags, split
from t2t_revival.decoding.resumable import digest
from t2t_revival.errors import T2TError
from t2t_revival.serving import client
from t2t_revival.serving.client import Model, query
from t2t_revival.serving.signatures import WITH_TABLES
from t2t_revival.utils.blank import is_blank
from t2t_revival.utils.texts import texts_of

if TYPE_CHECKING:
    from t2t_revival.decoding.lexical_constraints import LineConstraints
    from t2t_revival.problems.problem import Problem
    from t2t_revival.serving.phrases import Description, Requests

# Settings that a request may have.
SEARCH = re.compile(r"\b(beam_size|alpha|extra_length|return_beams|sampling_\w+|random_seed)\s*=")


@dataclass(frozen=True)
class ServedOptions:
    """Settings of the requests to an exported model.

    Attributes:
        problem: makes inputs of lines and texts of outputs. `None` sends and returns both unchanged.
        search: the search settings of each request. `None` keeps those of the export.
        tokenized: see `DecodeHParams`.
        scores: whether outputs are written with their scores.
        tag: see `DecodeHParams`.
        split_sentences: see `DecodeHParams`.
        detailed: settings of details; `None` for none.
        usual: the search settings of requests that must have some, as those with constraints must.
    """

    problem: Problem | None = None
    search: DecodeHParams | None = None
    tokenized: bool = False
    scores: bool = False
    tag: str = ""
    split_sentences: bool = False
    detailed: DecodeHParams | None = None
    usual: DecodeHParams = field(default_factory=DecodeHParams)

    @property
    def language(self) -> str:
        """The language of the lines, for `split`; English where the problem does not tell."""
        return (self.problem.source_lang if self.problem else "") or "en"

    @classmethod
    def parse(cls, text: str, problem: Problem | None) -> ServedOptions:
        """Parses `--decode_hparams`; where it has a setting of the search, the others are the problem's.

        Raises:
            T2TError: a setting is wrong, or is not one of requests.
        """
        default = DecodeHParams.from_problem(problem) if problem else DecodeHParams()
        options = DecodeHParams.parse(text, dataclasses.asdict(default))
        capabilities.check(options.asked(beside=default), capabilities.REQUEST)
        if options.tokenized and not problem:
            raise T2TError("decode_hparams: tokenized is for parsing: give --problem too")
        search = options if SEARCH.search(text) else None
        own = options.tokenized, options.write_beam_scores, options.tag, options.split_sentences
        detailed = options if options.details else None
        return cls(problem, search, *own, detailed=detailed, usual=options)


@dataclass(frozen=True)
class ServedTranslator:
    """Translates with an exported model.

    Attributes:
        model: the exported model, wherever it runs.
        options: settings of the requests.

    Example:
        translator = ServedTranslator(connect("localhost:8500", "translate_ende"), ServedOptions())
        (outputs,) = translator.nbest(["The dog sleeps."])
        print(outputs[0].text)
    """

    model: Model
    options: ServedOptions

    def nbest(
        self,
        lines: str | Iterable[str],
        filled: bool = False,
        batch_size: int = client.BATCH_SIZE,
        constraints: Sequence[LineConstraints | None] | None = None,
        first_line: int = 1,
    ) -> list[list[Translation]]:
        """Translates lines, or a single string, by one request, and more where some have constraints.

        See `client.query`. Sentences take requests of `batch_size`.

        Args:
            lines: any text.
            filled: see `client.query`.
            batch_size: lines of a request, for sentences.
            constraints: phrases that the outputs of each line must have or must not have; `None` has none.
            first_line: number of the first line, for messages.

        Raises:
            T2TError: constraints contradict each other, or the options have none; or as `constraints_of` and
                `client.query`.
        """
        options = self.options
        lines = texts_of([lines] if isinstance(lines, str) else lines, first=first_line)
        if constraints is not None:
            constraints = _constraints_of(constraints, len(lines), first_line)
        if constraints:
            return self._constrained(lines, filled, constraints, first_line)
        if not options.split_sentences:
            return self._nbest(lines, filled)
        lines = tagged(lines, options.tag)
        tags = [options.tag] if options.tag else []
        if options.problem and options.problem.lines_have_tags:
            tags = leading_tags(lines)
        paragraphs = [split(line, options.language, tags) for line in lines]
        texts = [text for paragraph in paragraphs for text in paragraph.texts]
        outputs = iter(self._best(texts, tags, batch_size))
        return [[join_outputs(one, [next(outputs) for _ in one.segments])] for one in paragraphs]

    def _best(self, texts: Sequence[str], tags: Sequence[str], batch_size: int) -> list[Translation]:
        """Returns the best output of each text; one that is too long is translated in parts."""
        best: list[Translation] = []
        for start in range(0, len(texts), batch_size):
            best += (outputs[0] for outputs in self._nbest(texts[start : start + batch_size], False))
        for place, text in enumerate(texts):
            parts = halve(text, tags) if best[place].truncated else None
            if parts and len(parts.segments) > 1:
                best[place] = join_outputs(parts, self._best(parts.texts, tags, batch_size))
        return best

    def _constrained(
        self,
        lines: Sequence[str],
        filled: bool,
        constraints: Sequence[LineConstraints | None],
        first_line: int,
    ) -> list[list[Translation]]:
        """Translates lines of which some have constraints; the others as without."""
        from t2t_revival.decoding.constrained_lines import checked

        usual = self.options.usual
        trees = self.options.problem is not None and self.options.problem.separates_words
        capabilities.check(usual.asked({"constraints": constraints}), *[capabilities.PARSER] * trees)
        all_checked = [one and checked(one, first_line + place) for place, one in enumerate(constraints)]
        inputs = self._inputs(lines)
        requests = self._description.requests(inputs, all_checked, usual, usual.outputs, first_line)
        bound = self._answered(requests)
        if filled:
            none = [Translation("", -math.inf)] * usual.outputs
            bound = {place: [*outputs, *none][: usual.outputs] for place, outputs in bound.items()}
        places = [*bound]
        rows = [lines[place] for place in places], [inputs[place] for place in places], [*bound.values()]
        found: dict[int, list[Translation]] = {}
        for place, outputs in zip(places, self._finished(*rows), strict=True):
            one = all_checked[place]
            assert one
            found[place] = [
                replace(output, missing=one.missing(output.text), present=one.present(output.text))
                for output in outputs
            ]
        free = [place for place in range(len(lines)) if place not in bound]
        if free:
            found |= zip(free, self._nbest([lines[place] for place in free], filled), strict=True)
        return [found[place] for place in range(len(lines))]

    @cached_property
    def _description(self) -> Description:
        from t2t_revival.serving.phrases import Description

        return Description.of(self.model)

    def _answered(self, requests: Requests) -> dict[int, list[Translation]]:
        """Calls the model for each of the requests; returns their outputs."""
        from t2t_revival.serving.phrases import next_request

        request, found = next_request(requests)
        while request is not None:
            request, found = next_request(requests, self.model.predict(WITH_TABLES, request))
        return found

    def _nbest(self, lines: Sequence[str], filled: bool) -> list[list[Translation]]:
        inputs = self._inputs(lines)
        answers = query(self.model, inputs, self.options.search, len(inputs), filled)
        return self._finished(lines, inputs, answers)

    def _inputs(self, lines: Sequence[str]) -> list[str]:
        """Returns what the model reads of each line."""
        problem, options = self.options.problem, self.options
        inputs = tagged(lines, options.tag)
        return [problem.preprocess(line, options.tokenized) for line in inputs] if problem else inputs

    def _finished(
        self, lines: Sequence[str], inputs: Sequence[str], answers: Sequence[list[Translation]]
    ) -> list[list[Translation]]:
        """Returns outputs as people read them, with their details."""
        problem, options = self.options.problem, self.options
        results = [
            [self._finish(text, output) for output in outputs] if not is_blank(text) else outputs[:1]
            for text, outputs in zip(inputs, answers, strict=True)
        ]
        if not options.detailed:
            return results
        own = [problem.preprocess(line, options.tokenized) for line in lines] if problem else lines
        return self._detailed(own, results)

    def _detailed(self, lines: Sequence[str], results: list[list[Translation]]) -> list[list[Translation]]:
        """Adds details to outputs, by one more request."""
        from t2t_revival.serving.details import query_details

        options, tag = self.options.detailed, self.options.tag
        assert options
        pairs = [
            (line, output.text)
            for line, outputs in zip(lines, results, strict=True)
            for output in outputs
            if not is_blank(line) and math.isfinite(output.score)
        ]
        found = iter(query_details(self.model, pairs, options.alternatives, bool(options.alignments), tag))
        return [
            [
                replace(output, details=next(found))
                if not is_blank(line) and math.isfinite(output.score)
                else output
                for output in outputs
            ]
            for line, outputs in zip(lines, results, strict=True)
        ]

    def iterate(
        self,
        lines: Sequence[str],
        batch_size: int,
        filled: bool = False,
        constraints: Sequence[LineConstraints | None] | None = None,
        skip: int = 0,
    ) -> Iterator[list[Translation]]:
        """Yields the outputs of each line, by requests of `batch_size`.

        Args:
            lines: any text.
            batch_size: lines of one request.
            filled: see `client.query`.
            constraints: see `nbest`.
            skip: number of lines at the beginning that have no outputs here.
        """
        for start in range(skip - skip % batch_size, len(lines), batch_size):
            part = slice(start, start + batch_size)
            own = constraints and constraints[part]
            yield from self.nbest(lines[part], filled, batch_size, own, start + 1)[max(skip - start, 0) :]

    def _finish(self, inputs: str, output: Translation) -> Translation:
        problem = self.options.problem
        if problem is None or math.isinf(output.score):  # fewer outputs than for other lines
            return output
        text, repaired = problem.postprocess(inputs, output.text)
        return replace(output, text=text, repaired=repaired)

    def origin(
        self,
        lines: Sequence[str],
        model_name: str | None,
        batch_size: int,
        constraints: Sequence[LineConstraints | None] | None = None,
    ) -> dict[str, Any]:
        """Returns everything that outputs depend on, except for the model that a server has at the time.

        Args:
            lines: see `iterate`.
            model_name: the model's name at the server.
            batch_size: see `iterate`.
            constraints: see `iterate`.
        """
        options = self.options
        bound = [dataclasses.astuple(one) if one else None for one in constraints or ()]
        return {
            "input": digest(lines),
            "model": [self.model.where, model_name],
            "problem": options.problem and options.problem.name,
            "decode_hparams": options.search and dataclasses.asdict(options.search),
            "tokenized": options.tokenized,
            "tag": options.tag,
            "split_sentences": options.split_sentences,
            "details": options.detailed and dataclasses.asdict(options.detailed),
            "batch_size": batch_size,
            **({"constraints": digest(bound)} if any(bound) else {}),
        }


def _constraints_of(constraints: Any, lines: int, first_line: int) -> list[LineConstraints | None] | None:
    """Calls `constraints_of`, which needs NumPy."""
    from t2t_revival.decoding.lexical_constraints import constraints_of

    return constraints_of(constraints, lines, first_line)
