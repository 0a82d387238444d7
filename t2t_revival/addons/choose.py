"""Choice among the outputs that a search has found: minimum Bayes risk, and the coverage penalty.

References: Kumar and Byrne, 2004, "Minimum Bayes-Risk Decoding for Statistical Machine Translation"; Eikema
and Aziz, 2020, "Is MAP Decoding All You Need?", whose candidates are samples. The coverage penalty is that of
Wu et al., 2016, "Google's Neural Machine Translation System", section 7, equation (14).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2t_revival.decoding.lines.batching import POSITIONS, make_batches
from t2t_revival.decoding.lines.line_decoder import trimmed
from t2t_revival.decoding.lines.local_search import Decoded
from t2t_revival.decoding.lines.preprocessor import pad
from t2t_revival.decoding.options import CHRF
from t2t_revival.decoding.outputs import MISSING, Candidate
from t2t_revival.metrics.bleu import tokenizer_for

CHARACTERS, WORDS = 6, 4  # longest n-grams of chrF and of BLEU
LEAST = 1e-9  # of the attention to a source token, whose logarithm is taken
BETA_SQUARED = 4  # of chrF: recall counts four times as much as precision


def by_expected_utility(
    candidates: Sequence[Candidate], utility: str, target_lang: str = ""
) -> list[Candidate]:
    """Returns candidates with their expected utilities as scores, best first; missing ones stay so."""
    utilities = expected_utilities([candidate.text for candidate in candidates], utility, target_lang)
    scored = [
        candidate._replace(score=float(utility)) if candidate.score > MISSING else candidate
        for candidate, utility in zip(candidates, utilities, strict=True)
    ]
    return sorted(scored, key=lambda candidate: -candidate.score)


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
    tokenize = tokenizer_for(target_lang)
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

    They are [texts, texts] and [texts].
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
        counts = np.zeros((len(texts), ngrams.max(initial=-1) + 1), np.float32)
        np.add.at(counts, (owners[:count][inside], ngrams[inside]), 1)
        shared, lengths = np.zeros((len(texts), len(texts))), counts.sum(1, dtype=float)
        while counts.any():  # the first occurrence of an n-gram matches the first one, and so on
            has = np.minimum(counts, 1)
            shared += has @ has.T
            counts = (counts - has)[:, counts.max(0) > 1]
        results.append((shared, lengths))
    return results


@dataclass(frozen=True)
class CoveragePenalty:
    """Adds the penalty to the scores of outputs that a search has found, and sorts them.

    Attributes:
        attend: called with ids of sources and of outputs; returns the weights of source tokens, [batch,
            target, source].
        weight: beta.
    """

    attend: Callable[[np.ndarray, np.ndarray], np.ndarray]
    weight: float

    def __call__(self, decoded: Sequence[Decoded]) -> list[Decoded]:
        """Returns the outputs of each input with their new scores, best first; missing ones stay last."""
        rows = [
            (number, place)
            for number, one in enumerate(decoded)
            for place, score in enumerate(one.scores)
            if score > -np.inf
        ]
        if not rows:
            return list(decoded)
        outputs = [trimmed(decoded[number].ids[place]) for number, place in rows]
        sources = [decoded[number].source_ids for number, _ in rows]
        lengths = [max(map(len, pair)) for pair in zip(sources, outputs, strict=True)]
        scores = [np.array(one.scores, np.float32) for one in decoded]
        for batch in make_batches(lengths, POSITIONS):
            attention = self.attend(*(pad([side[row] for row in batch]) for side in (sources, outputs)))
            for row, weights in zip(batch, attention, strict=True):
                number, place = rows[row]
                words = len(sources[row]) - 1  # EOS needs no coverage
                scores[number][place] += self.weight * penalty(weights[: len(outputs[row]), :words])
        return [_sorted(one, own) for one, own in zip(decoded, scores, strict=True)]


def penalty(attention: Any) -> float:
    """Returns the sum over source tokens of log(min(sum of their attention, 1)), at most 0.

    Args:
        attention: [target, source].
    """
    return float(np.log(np.clip(np.sum(attention, axis=0), LEAST, 1.0)).sum())


def _sorted(one: Decoded, scores: np.ndarray) -> Decoded:
    order = np.argsort(-scores, kind="stable").tolist()
    return one._replace(
        ids=[one.ids[place] for place in order], scores=[float(scores[place]) for place in order]
    )
