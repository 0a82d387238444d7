"""Outputs as lines of a file, in T2T's format, or drawn for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

Draw = Callable[[str], str]


class Output(Protocol):
    """One output of a line."""

    @property
    def text(self) -> str:
        """The text without a line end."""

    @property
    def score(self) -> float:
        """Log-probability / length penalty."""


def format_outputs(
    outputs: Sequence[Output], beams: bool, scores: bool, draw: Draw | None = None, columns: int = 1
) -> bytes:
    """Formats the outputs of one input as T2T does.

    Args:
        outputs: best first.
        beams: whether all outputs stand on the line, joined by tabs, and not only the best.
        scores: whether each output is followed by a tab and its score.
        draw: draws an output over several lines; an empty line, and no tab, then follows each.
        columns: with `beams`, the outputs of a line; missing ones are empty and have score -inf.
    """
    outputs = outputs if beams else outputs[:1]
    if draw:
        return to_bytes([draw_output(output, scores, draw) + "\n" for output in outputs])
    cells = []
    for output in outputs:
        # A tab in the text would look like a column.
        cells.append(output.text.replace("\t", " ") if beams or scores else output.text)
        cells += [f"{output.score:.2f}"] * scores
    missing = ["", "-inf"] if scores else [""]
    return to_bytes(["\t".join(cells + missing * (beams * (columns - len(outputs))))])


def draw_output(output: Output, scores: bool, draw: Draw) -> str:
    """Draws an output, below its score where `scores`."""
    return (f"{output.score:.2f}\n" if scores else "") + draw(output.text)


def to_bytes(lines: Sequence[str]) -> bytes:
    """Encodes lines, each with a line feed, as UTF-8."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8")
