"""Section 6.1: beam search with a length penalty, as T2T's `utils/beam_search.py`, on cached keys and values.

Differs from T2T in that a sentence's result does not depend on its batch: T2T bounds the output length of
all sentences by the longest source of the batch, here each has a bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from t2t_revival.data.vocabulary import EOS, PAD
from t2t_revival.errors import T2TError
from t2t_revival.model.transformer import DecoderState

if TYPE_CHECKING:
    from t2t_revival.model import Transformer

NEVER = -np.inf  # log-probability of what is no hypothesis
LEAVING = 4  # 1 / the share of the sentences that must be done for these to leave the batch
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


class Sentences(NamedTuple):
    """What does not change from position to position; the first dimension of everything is the batch.

    Attributes:
        number: the sentence's place among all, int32 [batch].
        limits: most tokens of its output, int32 [batch].
        settings: scalars, or [batch].
        encoder_caches: see `DecoderState`.
        encoder_bias: see `DecoderState`.
    """

    number: Any
    limits: Any
    settings: SearchSettings
    encoder_caches: Any
    encoder_bias: Any


class Beams(NamedTuple):
    """Hypotheses between two positions; both sets are sorted, best first.

    Attributes:
        last: last token of each alive hypothesis, int32 [batch, beams].
        alive_ids: int32 [batch, beams, position].
        alive_log_probs: float32 [batch, beams]; NEVER: no hypothesis there.
        finished_ids: int32 [batch, n, position], each ends with EOS and is padded with 0.
        finished_scores: log-probability / length penalty, float32 [batch, n]; NEVER as above.
        self_bias: see `DecoderState`.
        self_caches: see `DecoderState`.
    """

    last: Any
    alive_ids: Any
    alive_log_probs: Any
    finished_ids: Any
    finished_scores: Any
    self_bias: Any
    self_caches: Any


class Results(NamedTuple):
    """The best outputs so far of all sentences: ids [all, n, position], scores [all, n]."""

    ids: Any
    scores: Any


class BeamSearch:
    """Finds the most probable outputs of a model.

    The search is compiled once, at the first call, and reads the model's weights at each call: a model in
    training can be decoded again and again.

    Args:
        model: decoded as it is.
        weights: gives variables of the model with the values that stand for them; None: `cast_weights`.
        frozen: whether the model's weights will not change. A second copy of the matrix before the softmax
            then makes each call faster.

    Attributes:
        variables: what a SavedModel of a frozen search must hold besides the model's.

    Raises:
        T2TError: Keras runs on another backend than TensorFlow.

    Example:
        ids, scores = BeamSearch(model)(source_ids, beam_size=4, alpha=0.6, extra_length=50)
    """

    def __init__(
        self,
        model: Transformer,
        weights: Callable[[], list[tuple[Any, Any]]] | None = None,
        frozen: bool = False,
    ) -> None:
        if keras.backend.backend() != "tensorflow":
            raise T2TError(f"decoding needs KERAS_BACKEND=tensorflow, not {keras.backend.backend()}")
        self.model = model
        self._weights = weights or partial(cast_weights, model.weights, model.compute_dtype)
        kernel = model.softmax_embedding.kernel
        self.variables = [tf.Variable(kernel(), trainable=False)] if frozen else []
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

    def _search(self, source_ids: Any, settings: SearchSettings) -> Results:
        lengths = tf.math.count_nonzero(source_ids, axis=1, dtype=tf.int32)
        limits = tf.where(lengths > 0, lengths + settings.extra_length, 0)  # [batch], tokens
        with _in_place(self._weights()):
            state = _unfused(self.model.start_decoding(source_ids), limits)
            kernel = tf.convert_to_tensor(self.variables[0]) if self.variables else state.softmax_kernel
            numbers = tf.range(tf.shape(source_ids)[0])
            sentences = Sentences(numbers, limits, settings, state.encoder_caches, state.encoder_bias)
            n = _largest(settings.n)
            beams = _start(limits, n, state)
            start = sentences, beams, Results(beams.finished_ids, beams.finished_scores)
            *_, results = tf.while_loop(
                lambda _, beams, __: _alive(beams) > 0,
                partial(self._round, kernel),
                start,
                shape_invariants=tf.nest.map_structure(_free, start),
            )
        return results._replace(scores=_first(results.scores, settings.n))

    def _round(
        self, kernel: Any, sentences: Sentences, beams: Beams, results: Results
    ) -> tuple[Sentences, Beams, Results]:
        """Goes on until some sentences are done; these then leave the batch."""
        there = _alive(beams)
        enough = tf.maximum(1, there - there // LEAVING)

        def step(beams: Beams) -> tuple[Beams]:
            state = DecoderState(
                beams.self_caches, beams.self_bias, sentences.encoder_caches, sentences.encoder_bias, kernel
            )
            logits, after = self.model.decode_step(beams.last, _position(beams), state)
            beams = beams._replace(self_caches=after.self_caches, self_bias=after.self_bias)
            return (_advance(beams, logits, sentences),)

        (beams,) = tf.while_loop(
            lambda beams: _alive(beams) >= enough,
            step,
            (beams,),
            shape_invariants=(tf.nest.map_structure(_free, beams),),
        )
        results = _recorded(results, sentences, beams)
        left = tf.where(beams.alive_log_probs[:, 0] > NEVER)[:, 0]  # [sentences that go on]
        sentences, beams = tf.nest.map_structure(
            lambda x: x if x.shape.rank == 0 else tf.gather(x, left), (sentences, beams)
        )
        return sentences, beams, results


class _InModelPrecision(keras.layers.Layer):
    """Calls a function as the model calls itself: under mixed precision, weights are cast where used."""

    def __init__(self, model: Transformer, function: Callable[[Any], Any]) -> None:
        super().__init__(dtype=model.dtype_policy, name="beam_search")
        self.function = function

    def call(self, ids: Any) -> Any:
        return self.function(ids)


def cast_weights(weights: list[Any], dtype: str) -> list[tuple[Any, Any]]:
    """Those that mixed precision casts, with their casts: made before the loop, not at each position.

    Other weights stay variables: reading one costs a loop less than carrying it along.
    """
    return [
        (weight, tf.cast(weight.value, dtype))
        for weight in weights
        if weight._autocast and weight.dtype != dtype  # Keras has no public name for it
    ]


def _in_place(weights: list[tuple[Any, Any]]) -> keras.StatelessScope:
    """A scope in which variables have other values."""
    scope = keras.StatelessScope()
    for pair in weights:
        scope.add_update(pair)
    return scope


def _unfused(state: DecoderState, limits: Any) -> DecoderState:
    """The same state, but for TensorFlow the bias has an unknown size where it has 1.

    With oneDNN, TensorFlow 2.21 fuses product, scale and a bias of [batch, 1, ...] into one op; inside the
    loop of a decoder of one layer it never runs, and the search would end without a result or an error.
    """
    one = 1 + tf.minimum(tf.reduce_max(limits), 0)  # limits are not negative
    return state._replace(encoder_bias=tf.tile(state.encoder_bias, [1, one, 1, 1]))


def _start(limits: Any, n: Any, state: DecoderState) -> Beams:
    """One hypothesis without tokens per sentence; none where the limit is 0."""
    batch = tf.shape(limits)[0]
    return Beams(
        last=tf.zeros([batch, 1], tf.int32),
        alive_ids=tf.zeros([batch, 1, 0], tf.int32),
        alive_log_probs=tf.where(limits > 0, 0.0, NEVER)[:, None],
        finished_ids=tf.zeros([batch, n, 0], tf.int32),
        finished_scores=tf.fill([batch, n], NEVER),
        self_bias=state.self_bias,
        self_caches=state.self_caches,
    )


def _recorded(results: Results, sentences: Sentences, beams: Beams) -> Results:
    """With the best that `beams` have finished."""
    longer = _position(beams) - tf.shape(results.ids)[2]
    ids = tf.pad(results.ids, [[0, 0], [0, 0], [0, longer]], constant_values=PAD)
    places = sentences.number[:, None]
    return Results(
        tf.tensor_scatter_nd_update(ids, places, beams.finished_ids),
        tf.tensor_scatter_nd_update(results.scores, places, beams.finished_scores),
    )


def _free(x: Any) -> tf.TensorShape:
    """The shape of a loop's variable: batch, positions and beams change, or are known at run time only."""
    if x.shape.rank < 4:
        return tf.TensorShape([None] * x.shape.rank)
    return tf.TensorShape([None, x.shape[1], None, x.shape[3]])


def _alive(beams: Beams) -> Any:
    """How many sentences are not done, int32 scalar."""
    return tf.math.count_nonzero(beams.alive_log_probs[:, 0] > NEVER, dtype=tf.int32)


def _position(beams: Beams) -> Any:
    """How many tokens an alive hypothesis has, int32 scalar."""
    return tf.shape(beams.alive_ids)[2]


def _advance(beams: Beams, logits: Any, sentences: Sentences) -> Beams:
    """One position further.

    Args:
        beams: before the position, but for caches and ancestors, which have it.
        logits: [batch, beams, vocab] of the position.
        sentences: of the batch.
    """
    limits, settings = sentences.limits, sentences.settings
    length = _position(beams) + 1
    at_limit = length >= limits  # [batch]
    penalty = _column(length_penalty(length, settings.alpha))
    ids, log_probs, parents = _candidates(beams, logits, settings.beam_size)
    ended = tf.equal(ids[:, :, -1], EOS)

    width = tf.minimum(
        _largest(settings.beam_size), tf.shape(ids)[1]
    )  # a small vocabulary has few candidates
    alive_log_probs, kept = tf.math.top_k(tf.where(ended, NEVER, log_probs), width)
    alive_log_probs = _first(alive_log_probs, settings.beam_size)
    alive_ids = tf.gather(ids, kept, batch_dims=1)
    parents = tf.gather(parents, kept, batch_dims=1)  # [batch, beams]

    finished = (beams.finished_scores[:, 0] > NEVER) | tf.reduce_any(ended & (log_probs > NEVER), axis=1)
    outputs = ended | (at_limit & ~finished)[:, None]  # [batch, candidates]
    scores = tf.concat([beams.finished_scores, tf.where(outputs, log_probs / penalty, NEVER)], axis=1)
    finished_scores, kept = tf.math.top_k(scores, tf.shape(beams.finished_scores)[1])
    padded = tf.pad(beams.finished_ids, [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
    finished_ids = tf.gather(tf.concat([padded, ids], axis=1), kept, batch_dims=1)

    bound = alive_log_probs[:, 0] / _bounding_penalty(length, limits, settings.alpha)
    last = tf.zeros_like(limits) + settings.n - 1  # [batch]
    done = at_limit | (bound <= tf.gather(finished_scores, last, batch_dims=1))
    return Beams(
        last=alive_ids[:, :, -1],
        alive_ids=alive_ids,
        alive_log_probs=tf.where(done[:, None], NEVER, alive_log_probs),
        finished_ids=finished_ids,
        finished_scores=finished_scores,
        self_bias=tf.gather(beams.self_bias, parents, batch_dims=1),
        self_caches=beams.self_caches,
    )


def _largest(values: Any) -> Any:
    """Of one value or one for each sentence; at least 1, since TensorFlow refuses 0 where there is none."""
    return tf.maximum(tf.reduce_max(values), 1)


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
    """The 2 * beam_size best continuations of each sentence, so that beam_size are left if as many end.

    Returns:
        Ids [batch, candidates, position + 1], log-probabilities [batch, candidates], and the beam that each
        continues, [batch, candidates].
    """
    logits = tf.cast(logits, tf.float32)
    batch, width, vocab = tf.shape(logits)[0], tf.shape(logits)[1], logits.shape[-1]
    wanted = 2 * _largest(beam_size)  # of a sentence
    # One more than can be needed, since PAD may be among them; never the whole vocabulary's log-softmax.
    tops = tf.minimum(wanted + 1, vocab)
    top, tokens = top_tokens(logits, tops)  # [batch, beams, tops]
    # The best token's probability is no underflow, and its logarithm gives that of all others.
    best = tf.gather(tf.nn.softmax(logits), tokens[:, :, :1], batch_dims=2)  # [batch, beams, 1]
    log_sum = top[:, :, :1] - tf.math.log(best)
    log_probs = beams.alive_log_probs[:, :, None] + tf.where(tokens == PAD, NEVER, top - log_sum)

    flat = [batch, width * tops]
    log_probs, places = tf.math.top_k(tf.reshape(log_probs, flat), tf.minimum(wanted, width * tops))
    log_probs = _first(log_probs, 2 * beam_size)
    tokens = tf.gather(tf.reshape(tokens, flat), places, batch_dims=1)
    parents = places // tops  # [batch, candidates]
    before = tf.gather(beams.alive_ids, parents, batch_dims=1)
    return tf.concat([before, tokens[:, :, None]], axis=2), log_probs, parents


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
