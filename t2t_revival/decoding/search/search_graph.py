"""`SearchGraph`: all graphs by which a model decodes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import keras
import numpy as np
import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import PAD
from t2t_revival.decoding.addons import addon
from t2t_revival.decoding.engine import Annotations, Inputs
from t2t_revival.decoding.hypothesis_scores import NEG_INF, beginning_with
from t2t_revival.decoding.search.beam_search import grow, grow_greedy
from t2t_revival.decoding.search.beams import Beams, Results, Sentences, current_length, initial_beams
from t2t_revival.decoding.search.constraints import PrefixConstraint, TreeConstraint, max_output_lengths
from t2t_revival.decoding.search.decoding_loop import decode_all, drop_hidden_memory
from t2t_revival.decoding.search.guards import Guards, penalized, restrict
from t2t_revival.decoding.search.sampling import grow_samples
from t2t_revival.decoding.search.tf_workarounds import cast_weights, max_or_one, prevent_fusion
from t2t_revival.errors import T2TError
from t2t_revival.model import DecoderState, Transformer
from t2t_revival.model.incremental import InModelPrecision

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.options import DecodeHParams

Weights: TypeAlias = Callable[[], AbstractContextManager[Any]]
Grow: TypeAlias = Callable[[Beams, Any, Sentences, Any], Beams]  # as `beam_search.grow`


class SearchGraph:
    """The graphs of a model: search, samples, search for phrases, and annotation of given outputs.

    Each method adds ops to the present graph. Compiled, they are TensorFlow's engine; with strings around
    them, a SavedModel; with weights as constants, LiteRT's format. So all of them return the same.

    Args:
        model: the model, or an `Ensemble`; its weights are read where a graph runs.
        vocabulary: of the outputs.
        options: trees, guards and early stopping are those of all searches; the rest comes with `Inputs`.
        weights: returns a scope in which the model has the weights to decode with. `None` leaves its own.
        constant_weights: whether the model's weights will not change. Decoding is then faster, at the cost
            of a second copy of the softmax matrix.

    Attributes:
        constraint: restricts outputs to trees; `None` allows any. Probabilities are those among the tokens
            that the constraint knows.
        variables: variables that a SavedModel must hold beside the model's.

    Raises:
        T2TError: the Keras backend is not TensorFlow; or as `TreeConstraint`.
    """

    def __init__(
        self,
        model: Transformer,
        vocabulary: TextEncoder,
        options: DecodeHParams,
        weights: Weights | None = None,
        constant_weights: bool = False,
    ) -> None:
        backend = keras.backend.backend()
        if backend != "tensorflow":
            raise T2TError(
                f"decoding does not run on the Keras backend {backend}: set KERAS_BACKEND=tensorflow"
            )
        self._model, self._vocabulary, self._early_stopping = model, vocabulary, options.early_stopping
        self.constraint = TreeConstraint(vocabulary.pieces) if options.constrained else None
        self._guards = Guards.of(options)
        self._banned = PAD if self.constraint else vocabulary.banned  # PAD for none
        self._weights_of_search = weights or partial(cast_weights, model.weights, model.compute_dtype)
        self._weights_of_pass = weights or nullcontext
        self._kernels = model.softmax_kernel() if constant_weights and not self.constraint else ()
        kernels = tf.nest.flatten(self._kernels)  # one of each model of an ensemble
        self.variables = [tf.Variable(kernel, trainable=False) for kernel in kernels]

    @cached_property
    def spelling(self) -> Any:
        """The spelling of phrases that outputs must or must not have."""
        return addon("spelling")(self._vocabulary)

    def search(self, inputs: Inputs) -> Results:
        """Decodes sentences: searches for their best outputs, or draws them.

        Returns:
            Ids, int32 [batch, n + spare, length], and scores, float32 [batch, n + spare], best first, or in
            the order in which they were drawn. An output ends with EOS and is padded with 0. Outputs without
            EOS, cut at their maximum length, are returned only for a sentence that has none with EOS, and of
            samples. Where there are fewer, ids are 0 and the score is -inf.
        """
        inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
        decode = InModelPrecision(self._model, lambda ids: self._decode(inputs._replace(ids=ids)))
        return decode(inputs.ids)

    def bounds(self, inputs: Inputs) -> tuple[Any, Any]:
        """Returns the minimum and the maximum length of each output, both int32 [batch, 1].

        The minimum is () without guards.
        """
        prefixes = inputs.prefixes if inputs.has_prefixes else None
        longest = max_output_lengths(inputs.ids, inputs.settings.extra_length, prefixes)
        if not self._guards:
            return (), longest
        forced = 0 if prefixes is None else tf.math.count_nonzero(prefixes, 1, True, tf.int32)
        return self._guards.bounds(inputs.ids, longest, forced)

    def score(self, source_ids: Any, target_ids: Any) -> Any:
        """Returns log-probabilities of given outputs without a length penalty, float32 [batch].

        Args:
            source_ids: int32 [batch, source]; each ends with EOS and is padded with 0.
            target_ids: int32 [batch, target], likewise.
        """
        with self._weights_of_pass():
            logits, _ = teacher_forced(self._model, source_ids, target_ids)
        logits = self._begun(tf.cast(logits, tf.float32))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(target_ids, logits)
        return -tf.reduce_sum(tf.where(target_ids == PAD, 0.0, losses), axis=1)  # of [batch, target]

    def annotate(
        self, source_ids: Any, target_ids: Any, alternatives: Any, heads: AlignmentHeads | None = None
    ) -> Annotations:
        """Annotates given outputs; see `score`.

        Args:
            source_ids: see `score`.
            target_ids: see `score`.
            alternatives: number of the most probable tokens at each position.
            heads: whose attention is returned.
        """
        with self._weights_of_pass():
            logits, attention = teacher_forced(self._model, source_ids, target_ids, heads)
        log_probs = tf.nn.log_softmax(self._begun(tf.cast(logits, tf.float32)))  # [batch, target, vocab]
        values, tokens = tf.math.top_k(log_probs, alternatives)
        return Annotations(tf.gather(log_probs, target_ids, batch_dims=2), tokens, values, attention)

    def _begun(self, logits: Any) -> Any:
        """Returns logits of whole targets, [batch, target, vocab], that begin as all outputs do."""
        is_beginning = tf.range(tf.shape(logits)[1])[:, None] == 0
        return beginning_with(self._vocabulary.first, logits, is_beginning)

    def _grow_of(self, inputs: Inputs) -> Grow:
        """Returns what extends hypotheses by a position, as `beam_search.grow` does."""
        if inputs.draws:
            return grow_samples
        if inputs.tables:
            classes = tf.constant(self.spelling.classes)
            return partial(addon("grow_with_tables"), classes, early_stopping=self._early_stopping)
        beam_size = tf.get_static_value(inputs.settings.beam_size)
        if np.ndim(beam_size) == 0 and beam_size == 1:
            return grow_greedy
        return partial(grow, early_stopping=self._early_stopping)

    def _decode(self, inputs: Inputs) -> Results:
        min_lengths, max_lengths = self.bounds(inputs)  # [batch, 1]
        num_outputs = tf.zeros_like(max_lengths) + inputs.settings.n
        with self._weights_of_search():
            state = prevent_fusion(self._model.start_decoding(inputs.ids), max_lengths)
            kernel = state.softmax_kernel
            if self.variables:
                constants = [tf.convert_to_tensor(variable) for variable in self.variables]
                kernel = tf.nest.pack_sequence_as(self._kernels, constants)
            constraint: TreeConstraint | PrefixConstraint | None = self.constraint
            constraint_inputs: Any = ()
            if self.constraint:
                kernel = self._model.softmax_kernel(tf.range(self.constraint.size))
                constraint_inputs = self.constraint.count_words(inputs.ids)
            elif inputs.has_prefixes:
                constraint = PrefixConstraint(self._model.target_vocab_size)
                constraint_inputs = inputs.prefixes
            sentences = Sentences(
                indices=tf.range(tf.shape(inputs.ids)[0])[:, None],
                max_lengths=max_lengths,
                min_lengths=min_lengths,
                num_outputs=num_outputs,
                settings=inputs.settings,
                encoder_caches=state.encoder_caches,
                encoder_bias=state.encoder_bias,
                source_words=state.words,
                constraint_inputs=constraint_inputs,
                draws=inputs.draws,
                lexical=inputs.tables,
            )
            beams = initial_beams(sentences, max_or_one(inputs.settings.width), state)
            step = partial(self._step, self._grow_of(inputs), kernel, constraint)
            results = decode_all(step, sentences, beams)
        exists = tf.range(tf.shape(results.scores)[1]) < num_outputs + inputs.settings.spare
        scores = tf.where(exists, results.scores, NEG_INF)
        return Results(tf.where(tf.expand_dims(scores > NEG_INF, 2), results.seq, PAD), scores)

    def _step(
        self,
        grow: Grow,
        kernel: Any,
        constraint: TreeConstraint | PrefixConstraint | None,
        sentences: Sentences,
        beams: Beams,
    ) -> Beams:
        """Decodes one position: the model's logits, then `grow`."""
        state = DecoderState(
            beams.self_caches,
            beams.self_bias,
            sentences.encoder_caches,
            sentences.encoder_bias,
            kernel,
            sentences.source_words,
            beams.words_emitted,
        )
        logits, state = self._model.decode_step(beams.last_ids, current_length(beams), state)
        if self._model.hparams.attention_window:
            state = drop_hidden_memory(state)
        beams = beams._replace(
            self_caches=state.self_caches, self_bias=state.self_bias, words_emitted=state.words_emitted
        )
        allowed = None
        if constraint:
            inputs = sentences.constraint_inputs, sentences.max_lengths
            allowed = constraint.allowed_tokens(beams.alive_seq, *inputs)
        if self._banned != PAD:
            allowed = restrict(allowed, tf.range(tf.shape(logits)[2]) != self._banned)
        logits = beginning_with(self._vocabulary.first, logits, current_length(beams) == 0)
        logits = penalized(logits, beams.alive_seq, sentences.settings.penalties)
        if self._guards:
            vocab = tf.shape(logits)[2]
            allowed = self._guards(beams.alive_seq, vocab, sentences.min_lengths, allowed)
        return grow(beams, logits, sentences, allowed)


def teacher_forced(
    model: Transformer, source_ids: Any, target_ids: Any, heads: AlignmentHeads | None = None
) -> tuple[Any, Any]:
    """Returns logits, [batch, target, vocab], and the `attention` of `Annotations`; one pass of the model."""
    if heads is None:
        logits = model({"inputs": source_ids, "targets": target_ids}, training=False)
        return logits, tf.zeros([tf.shape(source_ids)[0], 0, 0])
    encoded = model.encode(source_ids)
    hidden, _, weights = model.decode(target_ids, source_ids, encoded, return_attention_scores=True)
    of_layer = tf.cast(weights, tf.float32)[:, heads.layer - 1]
    chosen = tf.gather(of_layer, [head - 1 for head in heads.heads], axis=1)
    attention = tf.where((target_ids != PAD)[:, :, None], tf.reduce_mean(chosen, axis=1), 0.0)
    if heads.shifted:
        attention = tf.pad(attention[:, 1:], [[0, 0], [0, 1], [0, 0]])
    return model.softmax_embedding(hidden, reverse=True), attention
