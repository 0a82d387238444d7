"""Which of the paper's findings a table of runs confirms (section 6.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2t_revival.evaluation.significance import Compared
from t2t_revival.reproduction.report import Cell

ABOUT_EQUAL = 0.5  # BLEU
HOLDS, UNDECIDED, FAILS = "holds", "not decided", "does not hold"


@dataclass(frozen=True)
class Finding:
    """What the paper found of a row beside the base model.

    Attributes:
        text: in words.
        row: an hparams set.
        direction: -1: its BLEU is lower than the base model's, 1: higher, 0: about equal.
    """

    text: str
    row: str
    direction: int


FINDINGS = (
    Finding("one head is worse than eight", "table3_a_h1", -1),
    Finding("too many heads are worse as well", "table3_a_h32", -1),
    Finding("a small d_k hurts", "table3_b_dk16", -1),
    Finding("fewer layers are worse", "table3_c_n2", -1),
    Finding("fewer channels are worse", "table3_c_d256", -1),
    Finding("more channels are better", "table3_c_d1024", 1),
    Finding("a narrower feed-forward network is worse", "table3_c_ff1024", -1),
    Finding("a wider feed-forward network is better", "table3_c_ff4096", 1),
    Finding("no dropout is worse", "table3_d_drop0", -1),
    Finding("no label smoothing is worse", "table3_d_ls0", -1),
    Finding("learned positions are about equal", "table3_e_learned", 0),
    Finding("the big model is better", "big", 1),
)


def verdict(finding: Finding, base: Compared, row: Compared) -> str:
    """Whether a finding holds: the difference is significant and of its sign, or small where none is said."""
    difference = row.score - base.score
    if finding.direction == 0:
        return HOLDS if abs(difference) <= ABOUT_EQUAL else FAILS if row.significant else UNDECIDED
    if not row.significant:
        return UNDECIDED
    return HOLDS if difference * finding.direction > 0 else FAILS


@dataclass(frozen=True)
class Scores:
    """BLEU and perplexity of a row in the paper."""

    bleu: float
    perplexity: float


def rows(
    compared: Mapping[str, Compared],
    perplexities: Mapping[str, float],
    base: str,
    paper: Mapping[str, Scores],
) -> list[list[Cell]]:
    """A line for each finding whose row was measured.

    Args:
        compared: BLEU that was measured, by row.
        perplexities: that were measured, by row.
        base: the name of the base model's row.
        paper: what the paper has, by row.
    """
    lines: list[list[Cell]] = []
    for finding in FINDINGS:
        if finding.row not in compared:
            continue
        row, stated = compared[finding.row], paper[finding.row]
        lines.append(
            [
                finding.text,
                f"{stated.bleu - paper[base].bleu:+.1f}",
                f"{row.score - compared[base].score:+.2f}",
                "" if row.p is None else f"{row.p:.3f}",
                verdict(finding, compared[base], row),
                f"{stated.perplexity - paper[base].perplexity:+.2f}",
                f"{perplexities[finding.row] - perplexities[base]:+.2f}",
            ]
        )
    return lines
