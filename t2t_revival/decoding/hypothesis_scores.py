"""The score by which all searches rank hypotheses, and the best one that a hypothesis can still reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras import ops

from t2t_revival.decoding.score_terms import TERMS


def score(log_probs: Any, length: Any, score_terms: Mapping[str, Any], longest: Any = None) -> Any:
    """Returns the scores of hypotheses.

    With `longest`, they are the best ones that alive hypotheses can still reach. A log-probability only falls
    from here on. By each term, today's is therefore best at the maximum length where the setting is positive,
    and at the next position where it is negative.

    Args:
        log_probs: float32 [batch, hypotheses].
        length: tokens of the hypotheses, EOS included; an integer tensor that broadcasts with `log_probs`.
        score_terms: see `SearchSettings`.
        longest: maximum number of tokens of each output, int32 [batch, 1]; `length` is then that of the next
            position.
    """
    scores = log_probs
    for term in TERMS:
        if term.name not in score_terms:
            continue
        setting = score_terms[term.name]
        tokens = length if longest is None else ops.where(setting >= 0, longest, length)
        scores = term.apply(scores, ops.cast(tokens, "float32"), setting)
    return scores
