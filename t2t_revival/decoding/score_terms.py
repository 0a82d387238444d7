"""The terms of the score by which all searches rank hypotheses.

A new term is a function here, a row of `TERMS`, and a field of `DecodeHParams`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Term(NamedTuple):
    """A term of the score, with its setting. Where that is 0, there is no such term.

    Attributes:
        name: of the setting, a float of `DecodeHParams`.
        minimum: of the setting.
        maximum: of the setting.
        apply: called with the score by the terms before it, the number of tokens, EOS included, and the
            setting; returns the new score. Arguments are numbers, or float32 tensors that broadcast. It grows
            with the score. Where the setting is positive, more tokens must not make it smaller, and where it
            is negative, not larger: the rule by which a search stops relies on both.
    """

    name: str
    minimum: float
    maximum: float
    apply: Callable[[Any, Any, Any], Any]


def length_penalty(log_prob: Any, length: Any, alpha: Any) -> Any:
    """Returns log-probability / length penalty, which is ((5 + length) / 6)^alpha.

    Reference: Wu et al., 2016, "Google's Neural Machine Translation System", section 7, equation (14).
    """
    return log_prob / ((5.0 + length) / 6.0) ** alpha


ALPHA, MAX_ALPHA = "alpha", 10  # with more, a length penalty may overflow float32
TERMS = (Term(ALPHA, -MAX_ALPHA, MAX_ALPHA, length_penalty),)  # in the order in which they are applied
