"""Ids as text: outputs, and their details."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_revival.data.mixture import symbol
from t2t_revival.data.vocabulary.sentencepiece import EOS, until_eos
from t2t_revival.decoding.detailer import Detailer, Hypothesis
from t2t_revival.decoding.minimum_bayes_risk import by_expected_utility
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import Score, Translation
from t2t_revival.decoding.preprocessor import LINE_ENDS

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder
    from t2t_revival.problems.problem import Problem


class Decoded(NamedTuple):
    """Outputs of an input, as a search finds them.

    Attributes:
        text: the model's input, with its tag.
        source_ids: ids of it, EOS included.
        ids: of each output, best first.
        scores: of each output; -inf for one that does not exist.
    """

    text: str
    source_ids: list[int]
    ids: list[list[int]]
    scores: list[float]


@dataclass(frozen=True)
class Postprocessor:
    """Converts ids to outputs.

    Attributes:
        vocabulary: of the targets.
        problem: converts the model's outputs to lines. `None` leaves them as they are.
        options: see `DecodeHParams`.
        detailer: computes details; `None` for none.
        coverage: see `CoveragePenalty`; `None` for none.
    """

    vocabulary: TextEncoder
    problem: Problem | None
    options: DecodeHParams
    detailer: Detailer | None = None
    coverage: Callable[[Sequence[Decoded]], list[Decoded]] | None = None

    def outputs(self, decoded: Iterable[Decoded], n: int) -> list[list[Translation]]:
        """Returns up to n outputs of each input; an empty one of score -inf if the weights contain NaN."""
        decoded = self.coverage([*decoded]) if self.coverage else decoded
        each = [(one, self._candidates(one)[:n]) for one in decoded]
        if self.detailer is None:
            return [[output for output, _ in candidates] for _, candidates in each]
        details = iter(
            self.detailer(
                [
                    self._hypothesis(one, output.text, ids)
                    for one, candidates in each
                    for output, ids in candidates
                    if output.score > -np.inf
                ]
            )
        )
        return [
            [
                replace(output, details=next(details)) if output.score > -np.inf else output
                for output, _ in candidates
            ]
            for _, candidates in each
        ]

    def scores(self, given: Sequence[Decoded], texts: Sequence[str]) -> list[Score]:
        """Returns the scores and the details of given outputs, one of each input."""
        assert self.detailer
        hypotheses = [self._hypothesis(one, text, one.ids[0]) for one, text in zip(given, texts, strict=True)]
        return [
            Score(sum(token.log_prob for token in details.tokens), len(details.tokens), details)
            for details in self.detailer(hypotheses)
        ]

    def _candidates(self, one: Decoded) -> list[tuple[Translation, list[int]]]:
        """Returns all outputs of an input and their ids, EOS included unless they were cut."""
        found: Sequence[tuple[str, float, list[int]]] = [
            (self.vocabulary.decode(ids).translate(LINE_ENDS), score, trimmed(ids))
            for ids, score in zip(one.ids, one.scores, strict=True)
            if score > -np.inf
        ] or [("", -np.inf, [])]
        if self.options.mbr:
            found = by_expected_utility(
                found, self.options.mbr, self.problem.target_lang if self.problem else ""
            )
        if self.problem is None:
            return [(Translation(text, score), ids) for text, score, ids in found]
        outputs = []
        for text, score, ids in found:
            processed, repaired = self.problem.postprocess(one.text, text)
            outputs.append((Translation(processed, score, repaired), ids))
        return outputs

    def _hypothesis(self, one: Decoded, text: str, ids: list[int]) -> Hypothesis:
        tag = symbol(self.options.tag)
        return Hypothesis(one.text.removeprefix(tag), tag, one.source_ids, text, ids)


def trimmed(ids: list[int]) -> list[int]:
    """Returns ids up to their end, EOS included; of an output that was cut, without padding."""
    return ids[: ids.index(EOS) + 1] if EOS in ids else until_eos(ids)
