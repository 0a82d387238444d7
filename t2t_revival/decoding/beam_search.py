"""Section 6.1: beam search with a length penalty, as T2T's `utils/beam_search.py`, on cached keys and values.

Differs from T2T in that a sentence's result does not depend on its batch: T2T bounds the output length of
all sentences by the longest source of the batch, here each has a bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from t2t_revival.data.vocabulary import EOS, PAD
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.model import DecoderState, Transformer

NEVER = -np.inf  # log-probability of what is no hypothesis
GROUP = 32  # tokens of a group in `top_tokens`
SMALL_VOCABULARY = 1024  # tokens below which groups gain nothing


def length_penalty(length: Any, alpha: Any) -> Any:
    """((5 + length) / 6)^alpha (Wu et al., 2016); `length` in tokens, EOS included."""
    return tf.pow((5.0 + tf.cast(length, tf.float32)) / 6.0, alpha)


class SearchSettings(NamedTuple):
    """What a search is asked for, as tensors: scalars, or [batch], a value for each sentence.

    Attributes:
        beam_size: hypotheses kept per sentence, int32.
        alpha: exponent of the length penalty, float32; 0: none.
        extra_length: how many tokens longer than its source an output may be, int32.
        n: outputs returned per sentence, at most `beam_size`; int32.
    """

    beam_size: Any
    alpha: Any
    extra_length: Any
    n: Any


class Beams(NamedTuple):
    """Hypotheses between two positions; both sets are sorted, best first.

    Attributes:
        position: how many tokens an alive hypothesis has, int32 scalar.
        last: last token of each alive hypothesis, int32 [batch, beams].
        alive_ids: int32 [batch, beams, position].
        alive_log_probs: float32 [batch, beams]; NEVER: no hypothesis there.
        finished_ids: int32 [batch, beams, position], each ends with EOS and is padded with 0.
        finished_scores: log-probability / length penalty, float32 [batch, beams]; NEVER as above.
        caches: K and V of each decoder layer, [batch * beams, heads, position, channels of a head].
    """

    position: Any
    last: Any
    alive_ids: Any
    alive_log_probs: Any
    finished_ids: Any
    finished_scores: Any
    caches: Any


class BeamSearch:
    """Finds the most probable outputs of a model.

    The search is compiled once, at the first call, and reads the model's weights at each call: a model in
    training can be decoded again and again.

    Args:
        model: decoded as it is.

    Raises:
        T2TError: Keras runs on another backend than TensorFlow.

    Example:
        ids, scores = BeamSearch(model)(source_ids, beam_size=4, alpha=0.6, extra_length=50)
    """

    def __init__(self, model: Transformer) -> None:
        if keras.backend.backend() != "tensorflow":
            raise T2TError(f"decoding needs KERAS_BACKEND=tensorflow, not {keras.backend.backend()}")
        self.model = model
        ids, integer, real = (
            tf.TensorSpec(shape, dtype)
            for shape, dtype in (([None, None], tf.int32), ([], tf.int32), ([], tf.float32))
        )
        settings = SearchSettings(beam_size=integer, alpha=real, extra_length=integer, n=integer)
        self._compiled = tf.function(self.search, input_signature=[ids, settings], autograph=False)

    def __call__(
        self, source_ids: Any, beam_size: int = 4, alpha: float = 0.6, extra_length: int = 50, n: int = 1
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Searches for the best outputs of each sentence.

        Args:
            source_ids: int32 [batch, source]; each ends with EOS and is padded with 0. A row of padding only
                has no outputs.
            beam_size: hypotheses kept at each position.
            alpha: exponent of the length penalty.
            extra_length: an output has at most as many tokens more than its source, EOS counted in both.
            n: outputs returned, at most `beam_size`.

        Returns:
            Ids, int32 [batch, n, length], and scores, float32 [batch, n], best first. An output ends with
            EOS, and 0 follows it. Outputs without EOS, cut at their bound, are returned for a sentence only
            if none with EOS was found. Where there are fewer than n, ids are 0 and the score is -inf.
        """
        beams, extra, returned = (tf.constant(value, tf.int32) for value in (beam_size, extra_length, n))
        settings = SearchSettings(beams, tf.constant(alpha, tf.float32), extra, returned)
        ids, scores = self._compiled(tf.cast(source_ids, tf.int32), settings)
        if ids.ndim != 3:  # see _unfused: better an error than lines that are missing
            raise RuntimeError("TensorFlow lost the search's result; try TF_ENABLE_ONEDNN_OPTS=0")
        return ids, scores

    def search(self, source_ids: tf.Tensor, settings: SearchSettings) -> tuple[tf.Tensor, tf.Tensor]:
        """The search as TensorFlow ops, for a graph of one's own; see `__call__`."""
        search = _InModelPrecision(self.model, lambda ids: self._search(ids, settings))
        return search(source_ids)

    def _search(self, source_ids: Any, settings: SearchSettings) -> tuple[Any, Any]:
        lengths = tf.math.count_nonzero(source_ids, axis=1, dtype=tf.int32)
        limits = tf.where(lengths > 0, lengths + settings.extra_length, 0)  # [batch], tokens
        with _weights_cast_once(self.model):
            width = tf.maximum(tf.reduce_max(settings.beam_size), 1)  # at least 1 where there is no sentence
            state = _unfused(self.model.start_decoding(source_ids, width), limits)
            start = _start(limits, width, state.self_caches)

            def step(beams: Beams) -> tuple[Beams]:
                logits, after = self.model.decode_step(
                    beams.last, beams.position, state._replace(self_caches=beams.caches)
                )
                return (_advance(beams._replace(caches=after.self_caches), logits, limits, settings),)

            (end,) = tf.while_loop(
                lambda beams: tf.reduce_any(beams.alive_log_probs[:, 0] > NEVER),
                step,
                (start,),
                shape_invariants=(_invariants(start),),
            )
        n = tf.maximum(tf.reduce_max(settings.n), 1)
        return end.finished_ids[:, :n], _first(end.finished_scores[:, :n], settings.n)


class _InModelPrecision(keras.layers.Layer):
    """Calls a function as the model calls itself: under mixed precision, weights are cast where used."""

    def __init__(self, model: Transformer, function: Callable[[Any], Any]) -> None:
        super().__init__(dtype=model.dtype_policy, name="beam_search")
        self.function = function

    def call(self, ids: Any) -> Any:
        return self.function(ids)


def _weights_cast_once(model: Transformer) -> keras.StatelessScope:
    """A scope in which weights that mixed precision casts are cast before the loop, not at each position.

    Other weights stay variables: reading one costs a loop less than carrying it along.
    """
    scope = keras.StatelessScope()
    if model.compute_dtype == model.variable_dtype:
        return scope
    for variable in model.weights:
        if variable._autocast:  # Keras has no public name for it
            scope.add_update((variable, tf.cast(variable.value, model.compute_dtype)))
    return scope


def _unfused(state: DecoderState, limits: Any) -> DecoderState:
    """The same state, but for TensorFlow the bias has an unknown size where it has 1.

    With oneDNN, TensorFlow 2.21 fuses product, scale and a bias of [batch, 1, ...] into one op; inside the
    loop of a decoder of one layer it never runs, and the search would end without a result or an error.
    """
    one = 1 + tf.minimum(tf.reduce_max(limits), 0)  # limits are not negative
    return state._replace(encoder_bias=tf.tile(state.encoder_bias, [1, one, 1, 1]))


def _start(limits: Any, beams: Any, caches: Any) -> Beams:
    """One hypothesis without tokens per sentence; none where the limit is 0."""
    batch = tf.shape(limits)[0]
    first = tf.where(limits > 0, 0.0, NEVER)[:, None]  # [batch, 1]
    nothing = tf.fill([batch, beams], NEVER)
    return Beams(
        position=tf.constant(0),
        last=tf.zeros([batch, beams], tf.int32),
        alive_ids=tf.zeros([batch, beams, 0], tf.int32),
        alive_log_probs=tf.concat([first, nothing[:, 1:]], axis=1),
        finished_ids=tf.zeros([batch, beams, 0], tf.int32),
        finished_scores=nothing,
        caches=caches,
    )


def _invariants(start: Beams) -> Beams:
    """Shapes that hold at every position: the ids and the caches grow."""
    ids, scores = tf.TensorShape([None, None, None]), tf.TensorShape([None, None])
    caches = tf.nest.map_structure(
        lambda cache: tf.TensorShape([None, cache.shape[1], None, cache.shape[3]]), start.caches
    )
    return Beams(tf.TensorShape([]), scores, ids, scores, ids, scores, caches)


def _advance(beams: Beams, logits: Any, limits: Any, settings: SearchSettings) -> Beams:
    """One position further.

    Args:
        beams: before the position, but for the caches, which have it.
        logits: [batch, beams, vocab] of the position.
        limits: most tokens of each sentence's output, [batch].
        settings: see `SearchSettings`.
    """
    length = beams.position + 1
    width = tf.shape(beams.last)[1]
    penalty = _column(length_penalty(length, settings.alpha))
    ids, log_probs, rows = _candidates(beams, logits, settings.beam_size)
    ended = tf.equal(ids[:, :, -1], EOS)

    alive_log_probs, kept = tf.math.top_k(tf.where(ended, NEVER, log_probs), width)
    alive_log_probs = _first(alive_log_probs, settings.beam_size)
    alive_ids = tf.gather(ids, kept, batch_dims=1)
    kept_rows = tf.reshape(tf.gather(rows, kept, batch_dims=1), [-1])

    finished_ids = tf.pad(beams.finished_ids, [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
    finished_ids = tf.concat([finished_ids, ids], axis=1)  # [batch, 3 * beams, length]
    finished_scores = tf.concat([beams.finished_scores, tf.where(ended, log_probs / penalty, NEVER)], axis=1)
    finished_scores, kept = tf.math.top_k(finished_scores, width)
    finished_scores = _first(finished_scores, settings.beam_size)
    finished_ids = tf.gather(finished_ids, kept, batch_dims=1)

    at_limit = length >= limits  # [batch]
    unfinished = (at_limit & (finished_scores[:, 0] == NEVER))[:, None]
    finished_ids = tf.where(unfinished[:, :, None], alive_ids, finished_ids)
    finished_scores = tf.where(unfinished, alive_log_probs / penalty, finished_scores)

    bound = alive_log_probs[:, 0] / _bounding_penalty(length, limits, settings.alpha)
    last = tf.zeros_like(limits) + settings.n - 1  # [batch]
    done = at_limit | (bound <= tf.gather(finished_scores, last, batch_dims=1))
    return Beams(
        position=length,
        last=alive_ids[:, :, -1],
        alive_ids=alive_ids,
        alive_log_probs=tf.where(done[:, None], NEVER, alive_log_probs),
        finished_ids=finished_ids,
        finished_scores=finished_scores,
        caches=tf.nest.map_structure(lambda cache: tf.gather(cache, kept_rows), beams.caches),
    )


def _column(x: Any) -> Any:
    """[batch] -> [batch, 1]; a scalar stays one."""
    return x if x.shape.rank == 0 else x[:, None]


def _first(values: Any, count: Any) -> Any:
    """[batch, width], NEVER from place `count`, [batch], on; a scalar count is the width: all stays."""
    if count.shape.rank == 0:
        return values
    return tf.where(tf.range(tf.shape(values)[1]) < count[:, None], values, NEVER)


def _bounding_penalty(length: Any, limits: Any, alpha: Any) -> Any:
    """The length penalty at which what is alive could still score best, [batch].

    Log-probabilities only fall: the largest penalty is the best, and it grows with the length where alpha
    is positive.
    """
    best = tf.where(alpha >= 0, limits, length + 1)
    return length_penalty(best, alpha)


def _candidates(beams: Beams, logits: Any, beam_size: Any) -> tuple[Any, Any, Any]:
    """The 2 * beams best continuations of each sentence, so that `beams` are left if as many end.

    Returns:
        Ids [batch, 2 * beams, position + 1], log-probabilities [batch, 2 * beams], and the row of the
        caches that each continues, [batch, 2 * beams].
    """
    logits = tf.cast(logits, tf.float32)
    width = tf.shape(logits)[1]
    # One more than can be needed, since PAD may be among them; never the whole vocabulary's log-softmax.
    tops = tf.minimum(2 * width + 1, logits.shape[-1])
    top, tokens = top_tokens(logits, tops)  # [batch, beams, tops]
    highest = top[:, :, :1]
    log_sum = highest + tf.math.log(tf.reduce_sum(tf.exp(logits - highest), axis=-1, keepdims=True))
    log_probs = beams.alive_log_probs[:, :, None] + tf.where(tokens == PAD, NEVER, top - log_sum)

    batch = tf.shape(log_probs)[0]
    log_probs, best = tf.math.top_k(tf.reshape(log_probs, [batch, width * tops]), 2 * width)
    log_probs = _first(log_probs, 2 * beam_size)
    tokens = tf.gather(tf.reshape(tokens, [batch, width * tops]), best, batch_dims=1)
    rows = best // tops + tf.range(batch)[:, None] * width  # [batch, 2 * beams]
    before = tf.gather(tf.reshape(beams.alive_ids, [batch * width, beams.position]), rows)
    return tf.concat([before, tokens[:, :, None]], axis=2), log_probs, rows


def top_tokens(logits: Any, k: Any) -> tuple[Any, Any]:
    """`tf.math.top_k` over a vocabulary, four times as fast on a CPU.

    The k largest lie in the k groups with the largest maxima: only these are sorted.

    Args:
        logits: float [batch, beams, vocab].
        k: int32 scalar, at most vocab.

    Returns:
        Values and ids, [batch, beams, k], the largest first.
    """
    vocab = logits.shape[-1]
    if vocab < SMALL_VOCABULARY:
        return tf.math.top_k(logits, k)
    if vocab % GROUP:
        logits = tf.pad(logits, [[0, 0], [0, 0], [0, -vocab % GROUP]], constant_values=NEVER)
    groups = -(-vocab // GROUP)
    shape = tf.shape(logits)
    grouped = tf.reshape(logits, [-1, groups, GROUP])  # [rows, groups, GROUP]
    largest = tf.minimum(k, groups)
    _, chosen = tf.math.top_k(tf.reduce_max(grouped, axis=2), largest)  # [rows, largest]
    members = tf.reshape(tf.gather(grouped, chosen, batch_dims=1), [-1, largest * GROUP])
    values, places = tf.math.top_k(members, k)  # [rows, k]
    ids = tf.gather(chosen, places // GROUP, batch_dims=1) * GROUP + places % GROUP
    found = [shape[0], shape[1], k]
    return tf.reshape(values, found), tf.reshape(ids, found)
