"""The score by which searches rank hypotheses, the best one that they can still reach, and tokens' penalties.

A new term of the score is a function here, a row of `TERMS`, and a field of `DecodeHParams`, 0 where it is
off. A penalty, which sees the tokens of the output so far, is a function, a row of `PENALTIES`, and a field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from t2t_revival.data.vocabulary.text_encoder import PAD

NEG_INF = float("-inf")  # log-probability of a hypothesis that does not exist


class TopK(NamedTuple):
    """The best candidates of each sentence at a position, best first.

    Attributes:
        seq: tokens, the new one included, int32 [batch, candidates, length]; longer in fixed shapes.
        log_probs: float32 [batch, candidates]; `NEG_INF` marks an unused place.
        finished: whether they end with EOS, bool [batch, candidates].
        parents: index of the alive hypothesis that each extends, int32 [batch, candidates].
    """

    seq: Any
    log_probs: Any
    finished: Any
    parents: Any


class Term(NamedTuple):
    """A term of the score, with its setting. Where that is 0, there is no such term.

    Attributes:
        name: of the setting, a float of `DecodeHParams`.
        apply: called with the score by the terms before it, the number of tokens, EOS included, and the
            setting; returns the new score. Arguments are numbers, or float32 tensors that broadcast. It grows
            with the score. Where the setting is positive, more tokens must not make it smaller, and where it
            is negative, not larger: the rule by which a search stops relies on both.
    """

    name: str
    apply: Callable[[Any, Any, Any], Any]


def is_active(beams: Any) -> Any:
    """Returns which sentences of `Beams` or `FixedBeams` are not done, bool [batch]."""
    return beams.alive_log_probs[:, 0] > NEG_INF


def length_penalty(log_prob: Any, length: Any, alpha: Any) -> Any:
    """Returns log-probability / length penalty, which is ((5 + length) / 6)^alpha.

    Reference: Wu et al., 2016, "Google's Neural Machine Translation System", section 7, equation (14).
    """
    return log_prob / ((5.0 + length) / 6.0) ** alpha


def normalized(log_prob: Any, length: Any, exponent: Any) -> Any:
    """Returns log-probability / length^exponent: Marian's `normalize`, transformers' `length_penalty`."""
    return log_prob / length**exponent


ALPHA, NORMALIZE = "alpha", "normalize"
LARGEST = 10  # exponent; with more, a length penalty may overflow float32
TERMS = (  # in the order in which they are applied
    Term(ALPHA, length_penalty),
    Term(NORMALIZE, normalized),
)


def less_repetition(logits: Any, counts: Any, penalty: Any) -> Any:
    """Divides positive logits of tokens that an output has already, and multiplies negative ones.

    Reference: Keskar et al., 2019, section 4.1, "CTRL".
    """
    from keras import ops

    changed = ops.where(logits > 0, logits / penalty, logits * penalty)
    return ops.where(counts > 0, changed, logits)


# By the name of the setting, a float of `DecodeHParams`, whose default is no penalty. Called with logits,
# float32 [batch, beams, vocab], how often the output so far has each token, int32 of the same shape, and the
# setting, [batch or 1, 1, 1]; returns the new logits. Scores are then those of the changed logits.
PENALTIES: dict[str, Callable[[Any, Any, Any], Any]] = {"repetition_penalty": less_repetition}


def finished_score(log_prob: float, length: int, score_terms: Mapping[str, float]) -> float:
    """Returns `score` of one finished hypothesis, by Python's numbers."""
    for term in TERMS:
        if term.name in score_terms:
            log_prob = term.apply(log_prob, float(length), score_terms[term.name])
    return float(log_prob)


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
    from keras import ops

    scores = log_probs
    for term in TERMS:
        if term.name not in score_terms:
            continue
        setting = score_terms[term.name]
        tokens = length if longest is None else ops.where(setting >= 0, longest, length)
        scores = term.apply(scores, ops.cast(tokens, "float32"), setting)
    return scores


def beginning_with(first: int, logits: Any, is_beginning: Any) -> Any:
    """Returns logits by which a token is certain at the beginning, so that it costs nothing there.

    Args:
        first: the token; PAD changes nothing.
        logits: [..., vocab].
        is_beginning: of the positions, bool, of a shape that broadcasts to `logits`.
    """
    if first == PAD:
        return logits
    from keras import ops

    others = ops.not_equal(ops.arange(ops.shape(logits)[-1]), first)
    return ops.where(ops.logical_and(is_beginning, others), NEG_INF, logits)
