"""`LocalSearch`: a request that an engine of this process decodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from t2t_revival.data.vocabulary.text_encoder import symbol
from t2t_revival.data.word_alignment import Link
from t2t_revival.decoding.addons import Attempt, ConstrainedSearch, Found, addon
from t2t_revival.decoding.details import Details
from t2t_revival.decoding.engine import ALL, Draws, Engine, Inputs, SearchSettings, max_output_length
from t2t_revival.decoding.lines.batching import BatchPlan
from t2t_revival.decoding.lines.detailer import Detailer, Hypothesis
from t2t_revival.decoding.lines.line_decoder import Candidates, Request, as_candidates
from t2t_revival.decoding.lines.preprocessor import OnTruncation, Preprocessor, pad

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder


class Decoded(NamedTuple):
    """Outputs of an input, as a search finds them.

    Attributes:
        source_ids: ids of the input, EOS included.
        ids: of each output, best first.
        scores: of each output; -inf for one that does not exist.
    """

    source_ids: list[int]
    ids: list[list[int]]
    scores: list[float]


@dataclass(frozen=True)
class LocalModel:
    """An engine, and what makes outputs of what it finds.

    Attributes:
        engine: finds outputs.
        vocabulary: of the outputs.
        coverage: changes the scores of outputs; `None` does not.
        detailer: computes details.
    """

    engine: Engine
    vocabulary: TextEncoder
    coverage: Callable[[Sequence[Decoded]], list[Decoded]] | None
    detailer: Detailer


class LocalSearch:
    """The decoding of a request by an engine; see `Search`.

    Args:
        model: the engine.
        request: what is decoded.
        preprocessor: encodes it.
        on_truncation: called for each input that is too long.
        align: returns the word alignments of lines and outputs.
        term_detailer: computes the details by which terms are checked; `None` if none are.

    Raises:
        T2TError: as `Preprocessor.sources`, `Preprocessor.prefixes` and `ConstrainedLines`, or the engine
            cannot search for phrases.
    """

    rounds_by_batch = True

    def __init__(
        self,
        model: LocalModel,
        request: Request,
        preprocessor: Preprocessor,
        on_truncation: OnTruncation,
        align: Callable[[Sequence[tuple[str, str]]], Iterable[Sequence[Link]]],
        term_detailer: Detailer | None,
    ) -> None:
        self._model, self._request, self._align = model, request, align
        self._term_detailer = term_detailer
        self._n = request.options.candidates_of(request.n)  # outputs to find, or to choose from
        self._spare = request.options.spare_of(request.n)
        options = request.options
        beam_size = self._n if options.samples else options.candidates_of(options.beam_size)
        self._settings = SearchSettings.of(options, self._n, self._spare)._replace(beam_size=beam_size)
        self._sources = preprocessor.sources(request.pieces, on_truncation)
        ids = [source.ids for source in self._sources]
        lines = [piece.line for piece in request.pieces]
        self.plan = BatchPlan([*map(len, ids)], request.options.tokens_at_once, lines)
        self._has_begun = False
        self._prefixes = preprocessor.prefixes(request.prefixes)
        self.constrained: ConstrainedSearch | None = None
        if request.constraints:
            search = addon("constrained_search")
            self.constrained = search(request, ids, model.engine.spelling, self._bound)

    async def free(self, indices: Sequence[int]) -> Candidates:
        """Decodes inputs without constraints."""
        options, n = self._request.options, self._n
        if not self._has_begun:
            self._has_begun = True
            self._model.engine.expect(self._lengths_from(min(indices)), self._settings)
        rows = pad([self._sources[index].ids for index in indices])
        prefix_rows: Any = pad([self._prefixes[index] for index in indices]) if self._prefixes else ()
        draws: Any = ()
        if options.samples:
            sizes = rows.shape[1], np.shape(prefix_rows)[-1], options.extra_length
            longest = max_output_length(*sizes, options)
            sampling = options.sampling_temp, options.sampling_keep_top_k
            numbers = [self._request.first_number + index for index in indices]
            draws = draws_of_lines(options.random_seed, numbers, longest, n, *sampling)
        found = self._model.engine.search(Inputs(rows, self._settings, prefix_rows, draws))
        return self.candidates(_by_index(indices, *found))

    def _lengths_from(self, first: int) -> Iterator[list[int]]:
        """Yields the lengths of inputs, batch by batch, from the window of the first one on."""
        plan = self.plan.for_parallel(1)
        for window in plan.windows():
            for batch in plan.batches(window) if window.stop > first else ():
                yield [plan.lengths[index] for index in batch]

    async def _bound(self, attempt: Attempt) -> dict[int, Found]:
        settings = SearchSettings.of(self._request.options, self._n, self._spare)
        inputs = Inputs(pad(attempt.ids), settings, tables=attempt.tables)
        return _by_index(attempt.indices, *self._model.engine.search(inputs))

    def candidates(self, found: Mapping[int, Found]) -> Candidates:
        """Returns the outputs of each input as text."""
        decoded = [Decoded(self._sources[index].ids, *hypotheses) for index, hypotheses in found.items()]
        if self._model.coverage:
            decoded = self._model.coverage(decoded)
        return {
            index: as_candidates((each.ids, each.scores), self._model.vocabulary, self._sources[index].is_cut)
            for index, each in zip(found, decoded, strict=True)
        }

    async def annotate(
        self, outputs: Sequence[tuple[int, str, Sequence[int]]], for_terms: bool
    ) -> Sequence[Details]:
        """Returns details of outputs by one pass of the model, of the tokens that the search has chosen."""
        detailer = self._term_detailer if for_terms else self._model.detailer
        assert detailer
        tag, pieces = symbol(self._request.options.tag), self._request.pieces
        return detailer(
            [
                Hypothesis(pieces[at].text.removeprefix(tag), tag, self._sources[at].ids, text, [*ids])
                for at, text, ids in outputs
            ]
        )

    async def align(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Sequence[Link]]:
        """Returns the word alignments of lines and outputs."""
        return [*self._align(pairs)]


def _by_index(indices: Sequence[int], ids: Any, scores: Any) -> dict[int, Found]:
    rows = zip(np.asarray(ids).tolist(), np.asarray(scores).tolist(), strict=True)
    return dict(zip(indices, rows, strict=True))


def draws_of_lines(
    seed: int, lines: Sequence[int], positions: int, n: int, temperature: float, keep_top_k: int = ALL
) -> Draws:
    """Returns random numbers for n samples of each line.

    Args:
        seed: at least 0.
        lines: a number for each line, at least 0. Its samples depend on it, on the seed, on n and on the
            sentence, but not on the other lines.
        positions: maximum length of the outputs.
        n: samples of a line.
        temperature: see `Draws`.
        keep_top_k: see `Draws`.
    """
    uniforms = [np.random.default_rng((seed, line)).random((positions, n), np.float32) for line in lines]
    return Draws(np.stack(uniforms), np.float32(temperature), np.int32(keep_top_k))
