"""Log-probabilities of given outputs (T2T's `--score_file`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from t2t_revival.decoding.outputs import Score

MAX_EXPONENT = 700.0  # exp of more overflows


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
