"""Minimum Bayes risk: of several candidates, the one most like the others.

Reference: Kumar and Byrne, 2004, "Minimum Bayes-Risk Decoding for Statistical Machine Translation"; Eikema
and Aziz, 2020, "Is MAP Decoding All You Need?", whose candidates are samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from t2t_revival.decoding.options import CHRF
from t2t_revival.metrics.bleu import tokenizer_for

CHARACTERS, WORDS = 6, 4  # longest n-grams of chrF and of BLEU
BETA_SQUARED = 4  # of chrF: recall counts four times as much as precision


def by_expected_utility(
    outputs: Sequence[tuple[str, float, list[int]]], utility: str, target_lang: str = ""
) -> list[tuple[str, float, list[int]]]:
    """Returns texts, expected utilities and ids, best first, given texts, scores and ids; -inf stays -inf."""
    utilities = expected_utilities([text for text, *_ in outputs], utility, target_lang)
    scored = [
        (text, float(own) if score > -np.inf else score, ids)
        for (text, score, ids), own in zip(outputs, utilities, strict=True)
    ]
    return sorted(scored, key=lambda output: -output[1])


def expected_utilities(texts: Sequence[str], utility: str, target_lang: str = "") -> np.ndarray:
    """Returns the mean utility of each candidate, with all candidates as references, float64 [candidates].

    Args:
        texts: the candidates; equal ones count as often as they are there.
        utility: one of `UTILITIES`, of a sentence, as sacreBLEU computes them by default, from 0 to 100.
        target_lang: decides the tokenizer of BLEU; see `metrics.bleu`.
    """
    counts = Counter(texts)
    utilities = _chrf([*counts]) if utility == CHRF else _bleu([*counts], target_lang)
    means = dict(zip(counts, utilities @ np.array([*counts.values()]) / len(texts), strict=True))
    return np.array([means[text] for text in texts])


def _chrf(texts: list[str]) -> np.ndarray:
    """Returns the chrF of each text, by row, with each as the reference, by column."""
    found = _matches([[*"".join(text.split())] for text in texts], CHARACTERS)
    precisions, recalls, orders = np.zeros((3, len(texts), len(texts)))
    for matches, lengths in found:
        there = (lengths[:, None] > 0) & (lengths[None] > 0)
        precisions += np.where(there, matches / np.maximum(lengths[:, None], 1), 0)
        recalls += np.where(there, matches / np.maximum(lengths[None], 1), 0)
        orders += there
    precisions, recalls = precisions / np.maximum(orders, 1), recalls / np.maximum(orders, 1)
    weighted = BETA_SQUARED * precisions + recalls
    scores = (1 + BETA_SQUARED) * precisions * recalls / np.where(weighted > 0, weighted, 1)
    return 100 * scores


def _bleu(texts: list[str], target_lang: str) -> np.ndarray:
    """Returns the BLEU of each text, by row, with each as the reference, by column."""
    tokenize = tokenizer_for(target_lang, texts)
    logarithms, orders, halvings = np.zeros((3, len(texts), len(texts)))
    any_match = np.zeros((len(texts), len(texts)), bool)
    (_, words), *_ = found = _matches([tokenize(text.strip()).split() for text in texts], WORDS)
    for matches, lengths in found:
        there = np.broadcast_to(lengths[:, None] > 0, matches.shape)
        halvings += there & (matches == 0)
        smoothed = np.where(matches > 0, matches, 0.5**halvings) / np.maximum(lengths[:, None], 1)
        logarithms += np.where(there, np.log(smoothed), 0)
        orders += there
        any_match |= matches > 0
    brevity = np.minimum(1 - words[None] / np.maximum(words[:, None], 1), 0)
    return np.where(any_match, 100 * np.exp(logarithms / np.maximum(orders, 1) + brevity), 0)


def _matches(texts: list[list[str]], longest: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns, for each n up to the longest, the n-grams that two texts share and those of each.

    They are int [texts, texts] and int [texts]. The second occurrence of an n-gram in a text matches the
    second one in the other, so that a product of two binary matrices counts them all.
    """
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    tokens = np.unique([token for text in texts for token in text], return_inverse=True)[1].astype(np.int64)
    ngrams, results = tokens, []
    for n in range(1, longest + 1):
        count = max(len(tokens) - n + 1, 0)
        if n > 1:
            longer = ngrams[:count] * (len(tokens) + 1) + tokens[n - 1 :]
            ngrams = np.unique(longer, return_inverse=True)[1]
        inside = owners[:count] == owners[n - 1 :]  # of one text
        results.append(_shared(owners[:count][inside], ngrams[inside], len(texts)))
    return results


def _shared(owners: np.ndarray, ngrams: np.ndarray, texts: int) -> tuple[Any, Any]:
    """Returns how many n-grams each two texts share, and how many each has; `owners` are their texts."""
    if not len(ngrams):
        return np.zeros((texts, texts), int), np.zeros(texts, int)
    order = np.lexsort((ngrams, owners))
    keys = owners[order] * (ngrams.max() + 1) + ngrams[order]
    starts = np.concatenate([[True], keys[1:] != keys[:-1]])
    places = np.arange(len(keys))
    occurrence = places - np.maximum.accumulate(np.where(starts, places, 0))
    items = np.unique(ngrams[order] * (occurrence.max() + 1) + occurrence, return_inverse=True)[1]
    has = np.zeros((texts, items.max() + 1), np.float32)
    has[owners[order], items] = 1
    return (has @ has.T).round().astype(int), np.bincount(owners, minlength=texts)
