"""Guards against repeated and too short or too long outputs, in the search and in sampling alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.decoding.hypothesis_scores import PENALTIES
from t2t_revival.decoding.options import DecodeHParams


@dataclass(frozen=True)
class Guards:
    """Restrictions of outputs that are text, each of them off by default.

    Attributes:
        no_repeat_ngram_size: no n-gram of so many tokens occurs twice in an output; 0 is off (Paulus et al.,
            2018, section 2.5, "A Deep Reinforced Model for Abstractive Summarization").
        min_length_ratio: tokens of an output at least, by those of its source, EOS not counted; 0 is off.
        max_length_ratio: tokens of an output at most; 0 is off.
        max_length_factor: the same, EOS counted on both sides; 0 is off (Marian).

    Forced beginnings stay what they are.
    """

    no_repeat_ngram_size: int = 0
    min_length_ratio: float = 0.0
    max_length_ratio: float = 0.0
    max_length_factor: float = 0.0

    @classmethod
    def of(cls, options: DecodeHParams) -> Guards | None:
        """Returns the guards that options ask for; `None` if all are off."""
        return cls(**options.guards) if options.guards else None

    def bounds(self, source_ids: Any, max_lengths: Any, prefix_lengths: Any) -> tuple[Any, Any]:
        """Returns the minimum and the maximum length of each output, EOS counted, both int32 [batch, 1].

        Args:
            source_ids: int32 [batch, source], EOS counted.
            max_lengths: the maximum without guards, int32 [batch, 1].
            prefix_lengths: tokens of forced beginnings, scalar or [batch, 1].
        """
        lengths = tf.math.count_nonzero(source_ids, axis=1, keepdims=True) - 1
        most, forced = max_lengths, tf.minimum(prefix_lengths + 1, max_lengths)
        if self.max_length_ratio:
            most = tf.maximum(tf.minimum(most, 1 + _share(self.max_length_ratio, lengths)), forced)
        if self.max_length_factor:
            most = tf.maximum(tf.minimum(most, _share(self.max_length_factor, lengths + 1)), forced)
        return tf.minimum(1 + _share(self.min_length_ratio, lengths), most), most

    def __call__(self, seq: Any, vocab: Any, min_lengths: Any, allowed: Any) -> Any:
        """Returns the tokens that are allowed, bool [batch, beams, vocab], or `None` for all.

        Args:
            seq: tokens so far, int32 [batch, beams, length].
            vocab: the number of tokens.
            min_lengths: see `bounds`.
            allowed: tokens that are allowed anyway, or `None` for all.
        """
        if not (self.no_repeat_ngram_size or self.min_length_ratio):
            return allowed
        too_short = (tf.shape(seq)[2] + 1 < min_lengths)[:, :, None]  # [batch, 1, 1]
        free = (tf.range(vocab) != PAD) & ~(too_short & (tf.range(vocab) == EOS))
        if self.no_repeat_ngram_size:
            free &= _counts(_repeating(seq, self.no_repeat_ngram_size), vocab) == 0
        return restrict(allowed, free)


def penalized(logits: Any, seq: Any, penalties: Mapping[str, Any]) -> Any:
    """Returns logits, [batch, beams, vocab], with penalties by the tokens so far; see `SearchSettings`."""
    if not penalties:
        return logits
    logits = tf.cast(logits, tf.float32)
    counts = _counts(seq, tf.shape(logits)[2])
    for name, penalty in PENALTIES.items():
        if name in penalties:
            setting = tf.reshape(penalties[name], [-1, 1, 1])
            logits = penalty(logits, counts, setting)
    return logits


def restrict(allowed: Any, free: Any) -> Any:
    """Returns the allowed tokens that are free; of a hypothesis where none is, as of a forced token, all.

    Args:
        allowed: bool [batch, beams, vocab]; `None` allows all.
        free: bool, of a shape that broadcasts to it.
    """
    if allowed is None:
        return free
    both = allowed & free
    return tf.where(tf.reduce_any(both, axis=2, keepdims=True), both, allowed)


def _share(ratio: float, lengths: Any) -> Any:
    """Returns how many tokens `ratio` of `lengths` tokens are, rounded up."""
    return tf.cast(tf.math.ceil(ratio * tf.cast(lengths, tf.float32)), tf.int32)


def _repeating(seq: Any, n: int) -> Any:
    """Returns the tokens that would end an n-gram a second time, int32 [batch, beams, places], else PAD."""
    length = tf.shape(seq)[2]
    places = tf.maximum(length - n + 1, 0)  # of n-grams so far
    padded = tf.pad(seq, [[0, 0], [0, 0], [n - 1, 0]])
    repeats = tf.ones_like(seq[:, :, :places], tf.bool)
    for place in range(n - 1):
        last = padded[:, :, length + place, None]
        repeats &= seq[:, :, place : place + places] == last
    return tf.where(repeats, seq[:, :, length - places :], PAD)


def _counts(tokens: Any, vocab: Any) -> Any:
    """Returns how often int32 [batch, beams, any] has each token, PAD as 0; int32 [batch, beams, vocab]."""
    batch, beams = tf.shape(tokens)[0], tf.shape(tokens)[1]
    first = vocab * tf.reshape(tf.range(batch * beams), [batch, beams, 1])  # place of a hypothesis's PAD
    places = tf.reshape(tokens + first, [-1, 1])
    found = tf.scatter_nd(places, tf.ones_like(places[:, 0]), [batch * beams * vocab])
    return tf.where(tf.range(vocab) != PAD, tf.reshape(found, [batch, beams, vocab]), 0)
