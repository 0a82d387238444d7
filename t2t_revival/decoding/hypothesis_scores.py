"""The score by which all searches rank hypotheses, and the best one that a hypothesis can still reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras import ops

from t2t_revival.decoding.score_terms import TERMS


def score(log_probs: Any, length: Any, score_terms: Mapping[str, Any]) -> Any:
    """Returns the scores of hypotheses.

    Args:
        log_probs: float32 [batch, hypotheses].
        length: tokens of the hypotheses, EOS included; an integer tensor that broadcasts with `log_probs`.
        score_terms: see `SearchSettings`.
    """
    scores = log_probs
    for term in TERMS:
        if term.name in score_terms:
            scores = term.apply(scores, ops.cast(length, "float32"), score_terms[term.name])
    return scores


def best_score(
    log_probs: Any,
    length: Any,
    max_lengths: Any,
    score_terms: Mapping[str, Any],
    early_stopping: bool = False,
) -> Any:
    """Returns the best scores that alive hypotheses can still reach.

    A log-probability only falls from here on. By each term, today's is therefore best at the maximum length
    where the setting is positive, and at the next position where it is negative.

    Args:
        log_probs: float32 [batch, hypotheses].
        length: tokens of the hypotheses, int32 scalar.
        max_lengths: maximum number of tokens of each output, int32 [batch, 1].
        score_terms: see `SearchSettings`.
        early_stopping: returns the scores of hypotheses that end at the next position, which is no bound.
    """
    if early_stopping:
        return score(log_probs, length + 1, score_terms)
    scores = log_probs
    for term in TERMS:
        if term.name in score_terms:
            setting = score_terms[term.name]
            best_length = ops.where(setting >= 0, max_lengths, length + 1)  # [batch, 1]
            scores = term.apply(scores, ops.cast(best_length, "float32"), setting)
    return scores
