"""n-best lists, as `t2t-decoder --decode_hparams=return_beams=True,write_beam_scores=True` writes them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from t2t_revival.errors import LineError, T2TError
from t2t_revival.utils.blank import is_blank

HOW = 'write it with t2t-decoder --decode_hparams="return_beams=True,write_beam_scores=True"'


class Candidate(NamedTuple):
    """An output of a line, and the score that the first model gave it."""

    text: str
    score: float


class NBest(NamedTuple):
    """The candidates of each line of a text.

    Attributes:
        sources: the lines.
        candidates: of each line, best first by the first model; one empty candidate of a blank line.
    """

    sources: Sequence[str]
    candidates: Sequence[list[Candidate]]

    @classmethod
    def parse(cls, lines: Sequence[str], sources: Sequence[str], name: str) -> NBest:
        """Parses a file of n-best lists.

        Outputs that the search did not finish, which are empty and have the score -inf, are left out, and so
        are empty ones beside others.

        Args:
            lines: of the file.
            sources: the text that was decoded.
            name: of the file, for errors.

        Raises:
            T2TError: the numbers of lines differ, a line is no list of outputs with their scores, or a line
                has no candidate.
        """
        if len(lines) != len(sources):
            raise T2TError(
                f"{name} has {len(lines)} lines, and the source has {len(sources)}: give the text that was "
                "decoded"
            )
        candidates = []
        for number, (line, source) in enumerate(zip(lines, sources, strict=True), start=1):
            try:
                candidates.append([Candidate("", 0.0)] if is_blank(source) else _parse(number, line))
            except LineError as error:
                raise T2TError(f"{name}, {error}") from error
        return cls(sources, candidates)

    @property
    def width(self) -> int:
        """The largest number of candidates of a line."""
        return max(map(len, self.candidates), default=0)

    def places(self) -> Iterator[tuple[int, int]]:
        """Yields the line and the rank, both from 0, of each candidate of lines that have several."""
        for line, candidates in enumerate(self.candidates):
            if len(candidates) > 1:
                yield from ((line, rank) for rank in range(len(candidates)))


def _parse(number: int, line: str) -> list[Candidate]:
    cells = line.split("\t")
    if len(cells) % 2:
        columns = f"{len(cells)} column{'s' * (len(cells) > 1)}"
        raise LineError(number, f"{columns} instead of pairs of an output and its score: {HOW}")
    outputs = [
        Candidate(text, _score(number, text, value))
        for text, value in zip(cells[::2], cells[1::2], strict=True)
    ]
    there = [output for output in outputs if output.score > -math.inf]
    if not there:
        raise LineError(number, "no candidates for a line that is not blank: the search finished none")
    return [output for output in there if output.text.strip()] or there[:1]


def _score(number: int, text: str, value: str) -> float:
    try:
        score = float(value)
    except ValueError as error:
        raise LineError(number, f"the score {value!r} is no number: {HOW}") from error
    if math.isfinite(score) or (score == -math.inf and not text):
        return score
    raise LineError(number, f"the score {value} of {text[:40]!r} is not finite: decode the text again")
