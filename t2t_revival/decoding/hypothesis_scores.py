"""The score by which all searches rank hypotheses, and the best one that a hypothesis can still reach.

A new term of the score is a field of the settings and a term of `score`; `best_score` must stay a bound of
it, or searches stop too early.

Reference: Wu et al., 2016, "Google's Neural Machine Translation System", section 7, equation (14).
"""

from __future__ import annotations

from typing import Any

from keras import ops


def score(log_probs: Any, length: Any, settings: Any) -> Any:
    """Returns the scores of hypotheses: log-probability / length penalty.

    Args:
        log_probs: float32 [batch, hypotheses].
        length: tokens of the hypotheses, EOS included; an integer tensor that broadcasts with `log_probs`.
        settings: of the search; has `alpha`, the exponent of the length penalty.
    """
    return log_probs / length_penalty(length, settings.alpha)


def best_score(
    log_probs: Any, length: Any, max_lengths: Any, settings: Any, early_stopping: bool = False
) -> Any:
    """Returns the best scores that alive hypotheses can still reach.

    A log-probability only falls from here on. The best score that an alive hypothesis can still reach is
    therefore today's log-probability / the largest penalty to come: that of the maximum length where alpha
    is positive, else that of the next position.

    Args:
        log_probs: float32 [batch, hypotheses].
        length: tokens of the hypotheses, int32 scalar.
        max_lengths: maximum number of tokens of each output, int32 [batch, 1].
        settings: see `score`.
        early_stopping: returns the scores of hypotheses that end at the next position, which is no bound.
    """
    longest = length + 1
    if not early_stopping:
        longest = ops.where(settings.alpha >= 0, max_lengths, longest)  # [batch, 1]
    return score(log_probs, longest, settings)


def length_penalty(length: Any, alpha: Any) -> Any:
    """((5 + length) / 6)^alpha; `length` counts tokens, EOS included."""
    return ops.power((5.0 + ops.cast(length, "float32")) / 6.0, alpha)
