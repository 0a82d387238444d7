"""Weights of features by which the best of several candidates are chosen, tuned for corpus BLEU.

Reference: Och, 2003, "Minimum Error Rate Training in Statistical Machine Translation".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from t2t_revival.metrics.bleu import bleu_metric

SEED, RESTARTS = 1, 20
ORDERS = 4  # of n-grams
MIN_GAIN = 1e-6  # BLEU
BEYOND = 1.0  # distance from the first or last crossing; features have a standard deviation of 1


class Table(NamedTuple):
    """Features of the candidates of each line.

    Attributes:
        features: float64 [lines, candidates, features].
        there: whether there is such a candidate, bool [lines, candidates]; the first of each line is.
    """

    features: np.ndarray
    there: np.ndarray

    def best(self, weights: np.ndarray) -> np.ndarray:
        """Returns the candidate of each line with the largest weighted sum, the first of equal ones."""
        return np.where(self.there, self.features @ weights, -np.inf).argmax(1)


def bleu_statistics(
    candidates: Sequence[Sequence[str]], references: Sequence[str], target_lang: str = ""
) -> np.ndarray:
    """Returns the statistics of which corpus BLEU is made, int64 [lines, candidates, 10], by sacreBLEU.

    They are the matches of n-grams of each order, their numbers, and the lengths of candidate and reference.
    `target_lang` is as in `sacrebleu_score`.
    """
    metric = bleu_metric(target_lang, references, effective_order=True)  # which warns of no single sentence
    statistics = np.zeros((len(candidates), max(map(len, candidates)), 2 * ORDERS + 2), np.int64)
    for row, texts, reference in zip(statistics, candidates, references, strict=True):
        for place, text in enumerate(texts):
            found = metric.corpus_score([text], [[reference]])
            row[place] = *found.counts, *found.totals, found.sys_len, found.ref_len
    return statistics


def corpus_bleu(statistics: np.ndarray) -> np.ndarray:
    """Returns sacreBLEU's BLEU, exponentially smoothed, of summed statistics [..., 10], from 0 to 100."""
    matches, totals = statistics[..., :ORDERS], statistics[..., ORDERS : 2 * ORDERS]
    length, reference = statistics[..., -2], statistics[..., -1]
    none = matches == 0
    smoothed = np.where(none, 0.5 ** np.cumsum(none, axis=-1), matches)
    log_precision = np.log(smoothed / np.maximum(totals, 1)).mean(-1)
    log_brevity = np.minimum(1 - reference / np.maximum(length, 1), 0)
    scored = (totals > 0).all(-1) & ~none.all(-1)
    return np.where(scored, 100 * np.exp(log_precision + log_brevity), 0.0)


def tune(table: Table, statistics: np.ndarray, seed: int = SEED, restarts: int = RESTARTS) -> np.ndarray:
    """Searches for the weights of largest BLEU: exact line searches along each axis, from several starts.

    The first start is the first feature alone, so that the result is at least as good. The absolute values of
    the weights sum to 1.

    Args:
        table: features of the candidates.
        statistics: of the same candidates; see `bleu_statistics`.
        seed: of the other starts and of the order of axes.
        restarts: number of the other starts.
    """
    scales = _scales(table)
    scaled = Table(table.features * scales, table.there)
    generator = np.random.default_rng(seed)
    first = np.eye(table.features.shape[2])[0]
    starts = [first, *generator.normal(size=(restarts, len(first))) * (scales != 0)]
    found = [_ascend(scaled, statistics, start, generator) for start in starts]
    weights = max(found, key=lambda weights: bleu_of(scaled, statistics, weights)) * scales
    return weights / np.abs(weights).sum()


def _scales(table: Table) -> np.ndarray:
    """Returns the factors that give each feature a standard deviation of 1 within lines.

    It is 0 for one that is equal for all candidates of each line, and 1 for the first feature.
    """
    there = table.there[:, :, None]
    means = (table.features * there).sum(1, keepdims=True) / there.sum(1, keepdims=True)
    deviations = np.sqrt((((table.features - means) * there) ** 2).sum((0, 1)) / there.sum())
    varies = deviations > 1e-12
    scales = np.where(varies, 1 / np.where(varies, deviations, 1), 0.0)
    return scales if varies[0] else np.r_[1.0, scales[1:]]


def _ascend(
    table: Table, statistics: np.ndarray, start: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Moves along one axis after the other until none is better."""
    weights, bleu = start.copy(), bleu_of(table, statistics, start)
    improved = True
    while improved:
        improved = False
        for axis in generator.permutation(len(weights)):
            moved = weights.copy()
            moved[axis] += best_step(table, statistics, weights, int(axis))
            score = bleu_of(table, statistics, moved)
            if score > bleu + MIN_GAIN and moved.any():
                weights, bleu, improved = moved, score, True
    return weights


def bleu_of(table: Table, statistics: np.ndarray, weights: np.ndarray) -> float:
    """Returns the BLEU of what weights choose."""
    chosen = statistics[np.arange(len(statistics)), table.best(weights)]
    return float(corpus_bleu(chosen.sum(0)))


def best_step(table: Table, statistics: np.ndarray, weights: np.ndarray, axis: int) -> float:
    """Returns how much must be added to a weight for the largest BLEU.

    The candidate that is chosen for a line changes at a few steps only, so that BLEU is constant between the
    steps of all lines; the result is the middle of the best interval.
    """
    lines = np.arange(len(statistics))
    chosen, crossings = _crossings(table, weights, axis)
    total = statistics[lines, chosen].sum(0)
    if not crossings:
        return 0.0
    steps, rows, before, after = (np.concatenate(column) for column in zip(*crossings, strict=True))
    order = np.argsort(steps, kind="stable")
    steps, rows, before, after = (column[order] for column in (steps, rows, before, after))
    changes = statistics[rows, after] - statistics[rows, before]
    scores = corpus_bleu(total + np.cumsum(np.r_[np.zeros_like(total)[None], changes], axis=0))
    bounds = np.r_[steps[0] - 2 * BEYOND, steps, steps[-1] + 2 * BEYOND]
    widths = np.diff(bounds)  # of the interval of each score
    best = int(np.where(widths > 1e-9, scores, -1.0).argmax())
    return float(bounds[best] + widths[best] / 2)


Crossing = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # steps, lines, candidates before and after


def _crossings(table: Table, weights: np.ndarray, axis: int) -> tuple[np.ndarray, list[Crossing]]:
    """Walks along the upper envelopes of all lines at once.

    Returns:
        The candidates that are chosen for very small weights, [lines], and the changes as the weight grows.
    """
    slopes, there = table.features[:, :, axis], table.there
    heights = table.features @ weights  # [lines, candidates]
    least = np.where(there, slopes, np.inf).min(1, keepdims=True)
    chosen = start = np.where(there & (slopes == least), heights, -np.inf).argmax(1)
    rows = np.arange(len(slopes))
    crossings: list[Crossing] = []
    while True:
        rises = slopes[rows] - slopes[rows, chosen][:, None]
        gaps = heights[rows, chosen][:, None] - heights[rows]
        rising = there[rows] & (rises > 0)
        steps = np.where(rising, gaps / np.where(rising, rises, 1), np.inf)  # at which another overtakes
        nearest = steps.min(1)
        following = np.where(rising & (steps == nearest[:, None]), rises, -np.inf).argmax(1)
        kept = np.isfinite(nearest)
        if not kept.any():
            return start, crossings
        crossings.append((nearest[kept], rows[kept], chosen[kept], following[kept]))
        rows, chosen = rows[kept], following[kept]
