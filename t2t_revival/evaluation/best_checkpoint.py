"""The checkpoint that an evaluation recommends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_revival.evaluation.checkpoint_scores import Evaluation
    from t2t_revival.evaluation.decoded import Metric

LEAST_SCORE = 1.0  # lower values of BLEU or F1 do not tell models apart
MOST_COMPARED = 10  # checkpoints; each bootstrap takes about a second


def best_checkpoint(
    rows: Sequence[Evaluation],
    metric: Metric | None,
    outputs: Mapping[str, Sequence[str]],
    references: Sequence[str],
) -> tuple[Evaluation, str]:
    """Selects the best row, and gives the reason in one line.

    BLEU or F1 decides if it is at least 1 and tells checkpoints apart: of those whose difference from the
    best is within the noise of the sample, by paired bootstrap, the one with the lowest loss is selected.

    Args:
        rows: at least one.
        metric: of the decoded outputs; `None` lets the loss decide.
        outputs: decoded outputs by the checkpoint of their row; rows without any are not compared.
        references: of the outputs, as many.
    """
    decoded = [row for row in rows if metric and metric.name in row.scores]
    if not (metric and decoded):
        lowest = min(rows, key=_by_loss)
        return lowest, _loss(lowest)
    best = max(decoded, key=lambda row: row.scores[metric.name])
    score = best.scores[metric.name]
    if score < LEAST_SCORE:
        lowest = min(decoded, key=_by_loss)
        worth = f"the best, {score:.2f} at {_name(best)}, is below {LEAST_SCORE:g}"
        return lowest, f"{_loss(lowest)} ({metric.title} does not decide: {worth})"
    for rank, row in enumerate(_lower_losses(decoded, best)):
        if not {best.checkpoint, row.checkpoint} <= outputs.keys():
            continue
        both = {name: outputs[name] for name in (best.checkpoint, row.checkpoint)}
        compared = metric.compare(both, references)[row.checkpoint]
        if not compared.significant:
            noise = f"within the noise of {len(references)} sentences, p = {compared.p:.2f}"
            worth = f"{score:.2f} at {_name(best)} and {compared.score:.2f} here are {noise}"
            loss = _loss(row, "lower" if rank else "lowest")
            return row, f"{loss} ({metric.title} does not decide: {worth})"
    return best, f"best {metric.title}: {_name(best)}, {score:.2f}"


def _lower_losses(rows: Sequence[Evaluation], best: Evaluation) -> list[Evaluation]:
    """Rows of lower loss than the best by score, the lowest first; at most `MOST_COMPARED`."""
    return sorted((row for row in rows if _by_loss(row) < _by_loss(best)), key=_by_loss)[:MOST_COMPARED]


def _by_loss(row: Evaluation) -> tuple[bool, float]:
    return math.isnan(row.scores["loss"]), row.scores["loss"]


def _loss(row: Evaluation, rank: str = "lowest") -> str:
    return f"{rank} loss: {_name(row)}, {row.scores['loss']:.4g}"


def _name(row: Evaluation) -> str:
    return f"step {row.step} (average)" if row.averaged else f"step {row.step}"
