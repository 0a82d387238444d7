"""Section 6.1: beam search with a length penalty, as T2T's `utils/beam_search.py`, on cached keys and values.

Differs from T2T in that a sentence's result does not depend on its batch: T2T bounds the output length of
all sentences by the longest source of the batch, here each has a bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from t2t_revival.data.vocabulary import PAD
from t2t_revival.decoding.hypotheses import (
    NEVER,
    Beams,
    Results,
    SearchSettings,
    Sentences,
    advance,
    alive,
    first,
    largest,
    position,
    start,
)
from t2t_revival.decoding.prefixes import PrefixConstraint, most_tokens
from t2t_revival.errors import T2TError
from t2t_revival.model import DecoderState
from t2t_revival.model.attention import MASKED

if TYPE_CHECKING:
    from t2t_revival.decoding.tree_constraint import TreeConstraint
    from t2t_revival.model import Transformer

LEAVING = 4  # when more than 1 / LEAVING of the sentences are done, these leave the batch
IDS, _INTEGER, _REAL = (
    tf.TensorSpec(shape, dtype)
    for shape, dtype in (([None, None], tf.int32), ([], tf.int32), ([], tf.float32))
)
SETTINGS = SearchSettings(beam_size=_INTEGER, alpha=_REAL, extra_length=_INTEGER, n=_INTEGER)


class BeamSearch:
    """Finds the most probable outputs of a model.

    The search is compiled once, at the first call, and reads the model's weights at each call: a model in
    training can be decoded again and again.

    Args:
        model: decoded as it is.
        weights: gives variables of the model with the values that stand for them; None: `cast_weights`.
        frozen: whether the model's weights will not change. A second copy of the matrix before the softmax
            then makes each call faster.
        constraint: what outputs may be; None: anything. The model's probabilities are then those among the
            tokens that the constraint knows.
        grow: takes hypotheses a position further; see `advance`.

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
        constraint: TreeConstraint | None = None,
        grow: Callable[[Beams, Any, Sentences, Any], Beams] = advance,
    ) -> None:
        if keras.backend.backend() != "tensorflow":
            raise T2TError(f"decoding needs KERAS_BACKEND=tensorflow, not {keras.backend.backend()}")
        self.model = model
        self.constraint = constraint
        self._grow = grow
        self._weights = weights or partial(cast_weights, model.weights, model.compute_dtype)
        kernel = model.softmax_embedding.kernel
        self.variables = [tf.Variable(kernel(), trainable=False)] if frozen else []
        self._compiled, self._with_prefixes = (
            tf.function(self.search, input_signature=signature, autograph=False)
            for signature in ([IDS, SETTINGS], [IDS, SETTINGS, IDS])
        )

    def __call__(
        self,
        source_ids: Any,
        beam_size: int = 4,
        alpha: float = 0.6,
        extra_length: int = 50,
        n: int = 1,
        prefixes: Any = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Searches for the best outputs of each sentence.

        Args:
            source_ids: int32 [batch, source]; each ends with EOS and is padded with 0. A row of padding only
                has no outputs.
            beam_size: hypotheses kept at each position.
            alpha: exponent of the length penalty.
            extra_length: an output has at most as many tokens more than its source, EOS counted in both.
            n: outputs returned, at most `beam_size`.
            prefixes: what outputs begin with, int32 [batch, longest], without EOS, padded with 0; None:
                anything. Its tokens count in the scores as all others, and an output may be so much longer
                than its prefix as it may be longer than its source. Not with a constraint.

        Returns:
            Ids, int32 [batch, n, length], and scores, float32 [batch, n], best first. An output ends with
            EOS, and 0 follows it. Outputs without EOS, cut at their bound, are returned for a sentence only
            if none with EOS was found. Where there are fewer than n, ids are 0 and the score is -inf.
        """
        source_ids, settings = tf.cast(source_ids, tf.int32), settings_of(beam_size, alpha, extra_length, n)
        if prefixes is None:
            return found(self._compiled(source_ids, settings))
        return found(self._with_prefixes(source_ids, settings, tf.cast(prefixes, tf.int32)))

    def search(
        self, source_ids: tf.Tensor, settings: SearchSettings, prefixes: Any = None, draws: Any = ()
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """The search as TensorFlow ops, for a graph of one's own; see `__call__`, and `Sentences.draws`."""
        if prefixes is not None and self.constraint:
            raise T2TError("outputs that must be trees cannot begin with a text")
        search = _InModelPrecision(self.model, lambda ids: self._search(ids, settings, prefixes, draws))
        return search(source_ids)

    def _search(self, source_ids: Any, settings: SearchSettings, prefixes: Any, draws: Any) -> Results:
        limits = most_tokens(source_ids, settings.extra_length, prefixes)  # [batch]
        with _in_place(self._weights()):
            state = _unfused(self.model.start_decoding(source_ids), limits)
            kernel = tf.convert_to_tensor(self.variables[0]) if self.variables else state.softmax_kernel
            constraint, facts = self._constrained(source_ids, prefixes)
            if constraint:
                kernel = kernel[:, : constraint.size]
            sentences = Sentences(
                number=tf.range(tf.shape(source_ids)[0]),
                limits=limits,
                settings=settings,
                encoder_caches=state.encoder_caches,
                encoder_bias=state.encoder_bias,
                facts=facts,
                source_words=state.words,
                draws=draws,
            )
            n = largest(settings.n)
            beams = start(limits, n, state)
            before = sentences, beams, Results(beams.finished_ids, beams.finished_scores)
            *_, results = tf.while_loop(
                lambda _, beams, __: alive(beams) > 0,
                partial(self._round, kernel, constraint),
                before,
                shape_invariants=tf.nest.map_structure(_free, before),
            )
        return results._replace(scores=first(results.scores, settings.n))

    def _constrained(
        self, source_ids: Any, prefixes: Any
    ) -> tuple[TreeConstraint | PrefixConstraint | None, Any]:
        """What outputs may be, None for anything, and what that needs to know of each sentence."""
        if self.constraint:
            return self.constraint, self.constraint.words(source_ids)
        if prefixes is None:
            return None, ()
        return PrefixConstraint(self.model.vocab_size), prefixes

    def _round(
        self,
        kernel: Any,
        constraint: TreeConstraint | PrefixConstraint | None,
        sentences: Sentences,
        beams: Beams,
        results: Results,
    ) -> tuple[Sentences, Beams, Results]:
        """Goes on until some sentences are done; these then leave the batch."""
        there = alive(beams)
        enough = tf.maximum(1, there - there // LEAVING)

        def step(beams: Beams) -> tuple[Beams]:
            state = DecoderState(
                beams.self_caches,
                beams.self_bias,
                sentences.encoder_caches,
                sentences.encoder_bias,
                kernel,
                sentences.source_words,
                beams.said,
            )
            logits, after = self.model.decode_step(beams.last, position(beams), state)
            if self.model.hparams.attention_window:
                after = without_what_left(after)
            beams = beams._replace(self_caches=after.self_caches, self_bias=after.self_bias, said=after.said)
            allowed = None
            if constraint:
                allowed = constraint.allowed(beams.alive_ids, sentences.facts, sentences.limits)
            return (self._grow(beams, logits, sentences, allowed),)

        (beams,) = tf.while_loop(
            lambda beams: alive(beams) >= enough,
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


def settings_of(beam_size: int, alpha: float, extra_length: int, n: int) -> SearchSettings:
    """The same for all sentences, as scalars."""
    beams, extra, returned = (tf.constant(value, tf.int32) for value in (beam_size, extra_length, n))
    return SearchSettings(beams, tf.constant(alpha, tf.float32), extra, returned)


def without_what_left(state: DecoderState) -> DecoderState:
    """Without the first of memory that no hypothesis sees any more: it stays as long as the neighbourhood."""
    seen = tf.reduce_any(state.self_bias > MASKED / 2, axis=[0, 1])  # [memory]
    left = tf.argmax(tf.cast(seen, tf.int32), output_type=tf.int32)
    return state._replace(
        self_caches=tf.nest.map_structure(lambda x: x[:, :, left:], state.self_caches),
        self_bias=state.self_bias[:, :, left:],
    )


def found(results: tuple[tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    """What a compiled search gave, if it gave anything."""
    if results[0].ndim != 3:  # see _unfused: better an error than lines that are missing
        raise RuntimeError("TensorFlow lost the search's result; try TF_ENABLE_ONEDNN_OPTS=0")
    return results


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


def _recorded(results: Results, sentences: Sentences, beams: Beams) -> Results:
    """With the best that `beams` have finished."""
    longer = position(beams) - tf.shape(results.ids)[2]
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
