"""`LineDecoder`: batches of a model's inputs to outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from t2t_revival.decoding.constrained_lines import ConstrainedLines, Hypotheses
from t2t_revival.decoding.engine import ALL, Draws, Engine, Inputs, SearchSettings
from t2t_revival.decoding.lexical_constraints import LineConstraints
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import Translation
from t2t_revival.decoding.postprocessor import Decoded, Postprocessor
from t2t_revival.decoding.preprocessor import pad
from t2t_revival.decoding.term_check import TermCheck
from t2t_revival.utils.blank import is_blank


class EncodedLines(NamedTuple):
    """The model's inputs in a call.

    Attributes:
        texts: lines or sentences, with their tags.
        ids: theirs, EOS included.
        prefixes: ids of forced beginnings; `None` if there are none.
        first_number: of the first input, as a seed of its samples.
        cut: indices of those that were too long.
    """

    texts: list[str]
    ids: list[list[int]]
    prefixes: list[list[int]] | None
    first_number: int
    cut: Collection[int]


@dataclass(frozen=True)
class LineDecoder:
    """Decodes batches of inputs.

    Attributes:
        inputs: of a call.
        constrained: those with constraints.
        engine: finds outputs.
        options: how to decode.
        postprocessor: makes outputs of ids.
        n: number of outputs.
        check: of terms.
        aligning: makes outputs with their word alignment; `None` if no terms are checked.
    """

    inputs: EncodedLines
    constrained: ConstrainedLines
    engine: Engine
    options: DecodeHParams
    postprocessor: Postprocessor
    n: int
    check: TermCheck
    aligning: Postprocessor | None

    def __call__(self, batch: list[int]) -> list[list[Translation]]:
        """Returns the outputs of some inputs, given by index."""
        outputs = {index: [Translation("", 0.0)] for index in batch}
        indices = [index for index in batch if not is_blank(self.inputs.texts[index])]
        found: list[Hypotheses] = []
        if any(index not in self.constrained for index in indices):
            found += self._free(indices)
        found += self.constrained.search(indices, self.options.candidates_of(self.n))
        outputs |= self._finished(found, self.postprocessor)
        if self.aligning:
            outputs |= self._checked(found, self.aligning)
        for index in outputs.keys() & self.inputs.cut:
            outputs[index] = [replace(one, truncated=True) for one in outputs[index]]
        return [self.constrained.mark(*each) for each in outputs.items()]

    def _free(self, indices: list[int]) -> Iterable[Hypotheses]:
        """Returns what the search finds of inputs without their constraints."""
        ids, prefixes, first = self.inputs.ids, self.inputs.prefixes, self.inputs.first_number
        rows = pad([ids[index] for index in indices])
        prefix_rows: Any = pad([prefixes[index] for index in indices]) if prefixes else ()
        options, n = self.options, self.options.candidates_of(self.n)
        draws: Any = ()
        if options.samples:
            longest = max(rows.shape[1], 1 + np.shape(prefix_rows)[-1]) + options.extra_length
            sampling = options.sampling_temp, options.sampling_keep_top_k
            numbers = [first + index for index in indices]
            draws = draws_of_lines(options.random_seed, numbers, longest, n, *sampling)
        beam_size = n if options.samples else options.candidates_of(options.beam_size)
        settings = SearchSettings.of(options, n)._replace(beam_size=beam_size)
        found = self.engine.search(Inputs(rows, settings, prefix_rows, draws))
        return zip(indices, *(np.asarray(values).tolist() for values in found), strict=True)

    def _finished(
        self, found: Iterable[Hypotheses], postprocessor: Postprocessor
    ) -> dict[int, list[Translation]]:
        decoded = {
            index: Decoded(self.inputs.texts[index], self.inputs.ids[index], ids, scores)
            for index, ids, scores in found
        }
        return dict(zip(decoded, postprocessor.outputs(decoded.values(), self.n), strict=True))

    def _checked(self, found: Iterable[Hypotheses], aligning: Postprocessor) -> dict[int, list[Translation]]:
        """Returns the outputs of the lines with terms."""

        def forced(constraints: Mapping[int, LineConstraints]) -> dict[int, list[Translation]]:
            n = self.options.candidates_of(self.n)
            again = self.constrained.again(constraints, self.inputs.texts, n)
            return self._finished(again, aligning)

        checked = self.check(
            self._finished((one for one in found if one[0] in self.check.lines), aligning),
            lambda indices: self._finished(self._free(indices), aligning),
            forced,
        )
        if aligning.options.details:
            return {**checked}
        return {index: [replace(one, details=None) for one in outputs] for index, outputs in checked.items()}


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
