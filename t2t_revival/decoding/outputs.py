"""Outputs, and their lines in T2T's format."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from t2t_revival.decoding.details import Details

MISSING = -math.inf  # score of an output that does not exist
MAX_EXPONENT = 700.0  # exp of more overflows
Draw = Callable[[str], str]


class Candidate(NamedTuple):
    """An output as a search finds it.

    Attributes:
        text: not yet postprocessed.
        score: log-probability / length penalty; `MISSING` for an output that does not exist.
        ids: its tokens, EOS included unless it was cut; empty where they are not known.
        truncated: whether its input was cut.
        cut: whether it was cut itself, at its greatest length; see `Translation`.
    """

    text: str
    score: float
    ids: Sequence[int] = ()
    truncated: bool = False
    cut: bool = False


@dataclass(frozen=True)
class Translation:
    """One output.

    Attributes:
        text: without line ends.
        score: log-probability / length penalty; 0 for the output of an empty input.
        repaired: whether the model's output was malformed, such as half a tree.
        truncated: whether the input was longer than the model's inputs may be, and was cut.
        details: of its words and tokens, if the options ask for them.
        missing: phrases of its line's constraints that it lacks, since there was no room for them.
        present: phrases that it has although they should be avoided.
        unaligned: terms of the source and their translations that it has, but for other words of the source,
            as far as its word alignment shows.
        cut: whether it has no end, because it reached its greatest length before.
    """

    text: str
    score: float
    repaired: bool = False
    truncated: bool = False
    details: Details | None = None
    missing: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    unaligned: tuple[tuple[str, str], ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class Score:
    """Log-probability of an output.

    Attributes:
        log_prob: natural logarithm of its probability given its source, summed over its tokens.
        tokens: number of tokens, EOS counted.
        details: of its words and tokens, if the options ask for them.
    """

    log_prob: float
    tokens: int
    details: Details | None = None


def format_outputs(
    outputs: Sequence[Translation],
    beams: bool,
    scores: bool,
    draw: Draw | None = None,
    columns: int = 1,
    links: Callable[[Any], str] | None = None,
) -> bytes:
    """Formats the outputs of one input as T2T does.

    Args:
        outputs: best first.
        beams: whether all outputs stand on the line, joined by tabs, and not only the best.
        scores: whether each output is followed by a tab and its score.
        draw: draws an output over several lines; an empty line, and no tab, then follows each.
        columns: with `beams`, the outputs of a line; missing ones are empty and have score -inf.
        links: formats an output's word alignment, which follows it after a tab; `None` for no alignments.
    """
    outputs = outputs if beams else outputs[:1]
    if draw:
        return to_bytes([draw_output(output, scores, draw) + "\n" for output in outputs])
    cells = []
    for output in outputs:
        # A tab in the text would look like a column.
        cells.append(output.text.replace("\t", " ") if beams or scores or links else output.text)
        cells += [f"{output.score:.2f}"] * scores
        cells += [links(output)] if links else []
    missing = ["", *["-inf"] * scores, *[""] * bool(links)]
    return to_bytes(["\t".join(cells + missing * (beams * (columns - len(outputs))))])


def draw_output(output: Translation, scores: bool, draw: Draw) -> str:
    """Draws an output, below its score where `scores`."""
    return (f"{output.score:.2f}\n" if scores else "") + draw(output.text)


def to_bytes(lines: Sequence[str]) -> bytes:
    """Encodes lines, each with a line feed, as UTF-8."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def per_token(scores: Sequence[Score]) -> tuple[float, float]:
    """Returns mean log-probability per token, and perplexity; 0 and 1 without scores."""
    tokens = sum(score.tokens for score in scores)
    mean = sum(score.log_prob for score in scores) / max(tokens, 1)
    return mean, math.exp(min(-mean, MAX_EXPONENT))


def summarize(scores: Sequence[Score]) -> str:
    """Describes the mean of scores for people."""
    mean, perplexity = per_token(scores)
    tokens = sum(score.tokens for score in scores)
    return (
        f"log-probability {mean:.4f} per token, perplexity {perplexity:.2f} ({tokens:,} tokens of "
        f"{len(scores):,} targets, EOS counted)"
    )
