"""`LocalSearch`: a request that an engine of this process decodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from t2t_revival.data.vocabulary.text_encoder import symbol
from t2t_revival.decoding.addons import Attempt, ConstrainedSearch, Constraints, Found, addon
from t2t_revival.decoding.batching import MapBatches
from t2t_revival.decoding.detailer import Detailer, Hypothesis
from t2t_revival.decoding.details import Details
from t2t_revival.decoding.engine import ALL, Draws, Engine, Inputs, SearchSettings
from t2t_revival.decoding.pipeline import Candidates, Request, as_candidates
from t2t_revival.decoding.preprocessor import OnTruncation, Preprocessor, Truncation, pad

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
        map_batches: see `Translator.map_batches`.
    """

    engine: Engine
    vocabulary: TextEncoder
    coverage: Callable[[Sequence[Decoded]], list[Decoded]] | None
    detailer: Detailer
    map_batches: MapBatches


class LocalSearch:
    """The decoding of a request by an engine; see `Search`.

    Args:
        model: the engine.
        request: what is decoded.
        preprocessor: encodes it.
        on_truncation: called for each input that is too long.
        term_detailer: computes the details by which terms are checked; `None` if none are.

    Raises:
        T2TError: as `Preprocessor.sources`, `Preprocessor.prefixes` and `ConstrainedLines`, or the engine
            cannot search for phrases.
    """

    def __init__(
        self,
        model: LocalModel,
        request: Request,
        preprocessor: Preprocessor,
        on_truncation: OnTruncation,
        term_detailer: Detailer | None,
    ) -> None:
        self._model, self._request, self._term_detailer = model, request, term_detailer
        self._n = request.options.candidates_of(request.n)  # outputs to find, or to choose from
        self._spare = request.options.spare_of(request.n)
        self._cut: set[int] = set()

        def note(truncation: Truncation) -> None:
            self._cut.add(truncation.number - request.first_number)
            on_truncation(truncation)

        self._ids = preprocessor.sources(request.texts, note)
        lengths, size = [*map(len, self._ids)], request.options.tokens_at_once
        self.windows: MapBatches = partial(model.map_batches, lengths=lengths, batch_size=size)
        self._prefixes = preprocessor.prefixes(request.prefixes)
        self._constrained: ConstrainedSearch | None = None
        if request.constraints:
            search = addon("constrained_search")
            self._constrained = search(request, self._ids, model.engine.spelling, self._find_bound)

    def find(self, indices: Sequence[int]) -> Candidates:
        """Decodes inputs; if some have constraints, the others are decoded with them all, and without any."""
        constrained = self._constrained
        if constrained is None:
            return self._candidates(self._find_free(indices))
        found = {}
        if any(index not in constrained for index in indices):
            found = self._find_free(indices)
        return self._candidates(found | constrained.search(indices))

    def find_free(self, indices: Sequence[int]) -> Candidates:
        """Decodes inputs without constraints."""
        return self._candidates(self._find_free(indices))

    def find_bound(self, constraints: Mapping[int, Constraints]) -> Candidates:
        """Decodes inputs with other constraints than theirs."""
        assert self._constrained
        return self._candidates(self._constrained.search_again(constraints))

    def annotate(
        self, outputs: Sequence[tuple[int, str, Sequence[int]]], for_terms: bool
    ) -> Sequence[Details]:
        """Returns details of outputs by one pass of the model, of the tokens that the search has chosen."""
        detailer = self._term_detailer if for_terms else self._model.detailer
        assert detailer
        tag = symbol(self._request.options.tag)
        return detailer(
            [
                Hypothesis(self._request.texts[index].removeprefix(tag), tag, self._ids[index], text, [*ids])
                for index, text, ids in outputs
            ]
        )

    def _find_free(self, indices: Sequence[int]) -> dict[int, Found]:
        options, n = self._request.options, self._n
        rows = pad([self._ids[index] for index in indices])
        prefix_rows: Any = pad([self._prefixes[index] for index in indices]) if self._prefixes else ()
        draws: Any = ()
        if options.samples:
            longest = max(rows.shape[1], 1 + np.shape(prefix_rows)[-1]) + options.extra_length
            sampling = options.sampling_temp, options.sampling_keep_top_k
            numbers = [self._request.first_number + index for index in indices]
            draws = draws_of_lines(options.random_seed, numbers, longest, n, *sampling)
        beam_size = n if options.samples else options.candidates_of(options.beam_size)
        settings = SearchSettings.of(options, n, self._spare)._replace(beam_size=beam_size)
        return self._search(indices, Inputs(rows, settings, prefix_rows, draws))

    def _find_bound(self, attempt: Attempt) -> dict[int, Found]:
        settings = SearchSettings.of(self._request.options, self._n, self._spare)
        return self._search(attempt.indices, Inputs(pad(attempt.ids), settings, tables=attempt.tables))

    def _search(self, indices: Iterable[int], inputs: Inputs) -> dict[int, Found]:
        ids, scores = (np.asarray(values).tolist() for values in self._model.engine.search(inputs))
        return dict(zip(indices, zip(ids, scores, strict=True), strict=True))

    def _candidates(self, found: Mapping[int, Found]) -> Candidates:
        """Returns the outputs of each input as text."""
        decoded = [Decoded(self._ids[index], *hypotheses) for index, hypotheses in found.items()]
        if self._model.coverage:
            decoded = self._model.coverage(decoded)
        return {
            index: as_candidates((each.ids, each.scores), self._model.vocabulary, index in self._cut)
            for index, each in zip(found, decoded, strict=True)
        }


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
