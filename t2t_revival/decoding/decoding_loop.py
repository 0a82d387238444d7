"""The loop of decoding: positions one after the other, for beam search and sampling alike.

T2T's loop keeps a batch together until its last sentence is done. Here sentences leave the batch when they
are done: see `run_until_compaction`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeAlias

import keras
import numpy as np
import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import PAD
from t2t_revival.decoding.beams import (
    NEG_INF,
    Beams,
    Draws,
    Results,
    SearchSettings,
    Sentences,
    current_length,
    initial_beams,
    initial_state,
    is_active,
    num_active,
)
from t2t_revival.decoding.constraints import PrefixConstraint, TreeConstraint, max_output_lengths
from t2t_revival.decoding.guards import Guards, restrict
from t2t_revival.decoding.lexical_tables import LexicalTables
from t2t_revival.decoding.model_precision import InModelPrecision
from t2t_revival.decoding.tf_workarounds import (
    cast_weights,
    check_result,
    max_or_one,
    prevent_fusion,
    shape_invariants,
)
from t2t_revival.errors import T2TError
from t2t_revival.model import DecoderState, Transformer
from t2t_revival.model.attention import MASKED

Grow: TypeAlias = Callable[[Beams, Any, Sentences, Any], Beams]  # as `beam_search.grow`

IDS, INTEGER, REAL = (
    tf.TensorSpec(shape, dtype)
    for shape, dtype in (([None, None], tf.int32), ([], tf.int32), ([], tf.float32))
)
SETTINGS = SearchSettings(INTEGER, REAL, INTEGER, INTEGER)
FLAGS = tf.TensorSpec([None, None], tf.bool)
TABLES = LexicalTables(*[IDS] * len(LexicalTables._fields))._replace(ended=FLAGS, forbidden=FLAGS)
COMPACTION = 4  # the batch is compacted when more than 1 / COMPACTION of its sentences are done


class DecodingLoop:
    """Decodes sentences position by position until all are done.

    Args:
        model: the model.
        grow: extends hypotheses by a position, as `beam_search.grow` does.
        constant_weights: see `BeamSearch`.
        constraint: see `BeamSearch`.
        weights: returns a scope in which the model has the weights to decode with. `None` is `cast_weights`.
        samples: whether `grow` needs random numbers.
        guards: restrict outputs that are text. `None` is for none.
        banned: a token that outputs that are text do not have, unless it is forced; PAD for none.
        grow_greedy: does what `grow` does, where beam_size is known to be 1. `None` leaves it to `grow`.

    Attributes:
        variables: variables that a SavedModel of the loop must hold beside the model's.

    Raises:
        T2TError: the Keras backend is not TensorFlow.
    """

    def __init__(
        self,
        model: Transformer,
        grow: Grow,
        constant_weights: bool = False,
        constraint: TreeConstraint | None = None,
        weights: Callable[[], AbstractContextManager[Any]] | None = None,
        samples: bool = False,
        guards: Guards | None = None,
        banned: int = PAD,
        grow_greedy: Grow | None = None,
    ) -> None:
        if keras.backend.backend() != "tensorflow":
            raise T2TError(
                f"decoding does not run on the Keras backend {keras.backend.backend()}: "
                "set KERAS_BACKEND=tensorflow"
            )
        self.model = model
        self._grow = grow
        self._grow_greedy = grow_greedy or grow
        self._constraint = constraint
        self._guards, self._banned = guards, banned
        self._weights = weights or partial(cast_weights, model.weights, model.compute_dtype)
        self._kernels = model.softmax_kernel() if constant_weights and not constraint else ()
        kernels = tf.nest.flatten(self._kernels)  # one of each model of an ensemble
        self.variables = [tf.Variable(kernel, trainable=False) for kernel in kernels]
        uniforms = tf.TensorSpec([None, None, None], tf.float32)
        draws = Draws(uniforms, REAL, INTEGER) if samples else ()
        signature = [IDS, SETTINGS, draws]
        self._compiled = {
            (each, has_prefixes): tf.function(
                partial(self._in_model_precision, each),
                input_signature=[*signature, IDS] if has_prefixes else signature,
                autograph=False,
            )
            for each in (self._grow, self._grow_greedy)
            for has_prefixes in (False, True)
        }

    def compile_lexical(self, grow: Callable[[Any, Beams, Any, Sentences, Any], Beams]) -> Any:
        """Compiles the loop for outputs that have given phrases.

        Args:
            grow: extends hypotheses; its first argument is the class of each token, int32 [vocab].

        Returns:
            A function of source ids, settings, classes of tokens and `LexicalTables`; it returns ids and
            scores.
        """

        def decode(ids: Any, settings: SearchSettings, classes: Any, tables: LexicalTables) -> Any:
            return self.decode_lexical(partial(grow, classes), ids, settings, tables)

        classes = tf.TensorSpec([None], tf.int32)
        return tf.function(decode, input_signature=[IDS, SETTINGS, classes, TABLES], autograph=False)

    def decode_lexical(self, grow: Grow, source_ids: Any, settings: SearchSettings, tables: Any) -> Any:
        """Adds the ops of a loop with `LexicalTables` to the present graph; see `compile_lexical`."""
        return self._in_model_precision(grow, source_ids, settings, (), None, tables)

    def bounds(self, source_ids: Any, settings: SearchSettings, prefixes: Any = None) -> tuple[Any, Any]:
        """Returns the minimum and the maximum length of each output, both int32 [batch, 1].

        The minimum is () without guards.
        """
        longest = max_output_lengths(source_ids, settings.extra_length, prefixes)
        if not self._guards:
            return (), longest
        forced = 0 if prefixes is None else tf.math.count_nonzero(prefixes, 1, True, tf.int32)
        return self._guards.bounds(source_ids, longest, forced)

    def run(
        self, source_ids: Any, settings: SearchSettings, prefixes: Any = None, draws: Any = ()
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Runs the compiled loop; `settings` are scalars. See `BeamSearch.__call__` for the other values."""
        decode = self._compiled[self._grow_of(settings), prefixes is not None]
        inputs = [source_ids] if prefixes is None else [source_ids, prefixes]
        ids, *forced = (tf.cast(x, tf.int32) for x in inputs)
        return check_result(decode(ids, settings, draws, *forced))

    def __call__(
        self, source_ids: Any, settings: SearchSettings, draws: Any = (), prefixes: Any = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Adds the loop's ops to the present graph; see `run`."""
        return self._in_model_precision(self._grow_of(settings), source_ids, settings, draws, prefixes)

    def _in_model_precision(
        self,
        grow: Grow,
        source_ids: Any,
        settings: SearchSettings,
        draws: Any,
        prefixes: Any = None,
        tables: Any = (),
    ) -> tuple[tf.Tensor, tf.Tensor]:
        if prefixes is not None and self._constraint:
            raise T2TError(
                "prefixes are for outputs that are text, and here outputs are trees: leave them out"
            )
        inputs = settings, draws, prefixes, tables
        return InModelPrecision(self.model, lambda ids: self._decode(grow, ids, *inputs))(source_ids)

    def _grow_of(self, settings: SearchSettings) -> Grow:
        """Returns `grow_greedy` if the graph may rely on a beam_size of 1, else `grow`."""
        beam_size = tf.get_static_value(settings.beam_size)
        is_one = np.ndim(beam_size) == 0 and beam_size == 1
        return self._grow_greedy if is_one else self._grow

    def _decode(
        self,
        grow: Grow,
        source_ids: Any,
        settings: SearchSettings,
        draws: Any,
        prefixes: Any,
        tables: Any,
    ) -> Results:
        min_lengths, max_lengths = self.bounds(source_ids, settings, prefixes)  # [batch, 1]
        num_outputs = tf.zeros_like(max_lengths) + settings.n
        with self._weights():
            state = prevent_fusion(self.model.start_decoding(source_ids), max_lengths)
            kernel = state.softmax_kernel
            if self.variables:
                constants = [tf.convert_to_tensor(variable) for variable in self.variables]
                kernel = tf.nest.pack_sequence_as(self._kernels, constants)
            constraint: TreeConstraint | PrefixConstraint | None = self._constraint
            constraint_inputs: Any = ()
            if self._constraint:
                kernel = self.model.softmax_kernel(tf.range(self._constraint.size))
                constraint_inputs = self._constraint.count_words(source_ids)
            elif prefixes is not None:
                constraint, constraint_inputs = PrefixConstraint(self.model.target_vocab_size), prefixes
            sentences = Sentences(
                indices=tf.range(tf.shape(source_ids)[0])[:, None],
                max_lengths=max_lengths,
                min_lengths=min_lengths,
                num_outputs=num_outputs,
                settings=settings,
                encoder_caches=state.encoder_caches,
                encoder_bias=state.encoder_bias,
                source_words=state.words,
                constraint_inputs=constraint_inputs,
                draws=draws,
                lexical=tables,
            )
            beams = initial_beams(max_lengths, max_or_one(settings.n), state)
            if tables:
                beams = beams._replace(lexical=initial_state(tables))
            variables = sentences, beams, Results(beams.finished_seq, beams.finished_scores)
            *_, results = tf.while_loop(
                lambda _, beams, __: num_active(beams) > 0,
                partial(run_until_compaction, partial(self._step, grow, kernel, constraint)),
                variables,
                shape_invariants=shape_invariants(variables),
            )
        exists = tf.range(tf.shape(results.scores)[1]) < num_outputs
        return Results(results.seq, tf.where(exists, results.scores, NEG_INF))

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
        logits, state = self.model.decode_step(beams.last_ids, current_length(beams), state)
        if self.model.hparams.attention_window:
            state = drop_hidden_memory(state)
        beams = beams._replace(
            self_caches=state.self_caches, self_bias=state.self_bias, words_emitted=state.words_emitted
        )
        allowed = None
        if constraint:
            inputs = sentences.constraint_inputs, sentences.max_lengths
            allowed = constraint.allowed_tokens(beams.alive_seq, *inputs)
        if self._banned != PAD and not self._constraint:
            allowed = restrict(allowed, tf.range(tf.shape(logits)[2]) != self._banned)
        if self._guards:
            logits, allowed = self._guards(logits, beams.alive_seq, sentences.min_lengths, allowed)
        return grow(beams, logits, sentences, allowed)


def run_until_compaction(
    step: Callable[[Sentences, Beams], Beams], sentences: Sentences, beams: Beams, results: Results
) -> tuple[Sentences, Beams, Results]:
    """Decodes positions until enough sentences are done, and then compacts the batch.

    The time of a position grows with the sentences of the batch, done or not. To compact it copies all
    caches, which takes longer than a position with a few sentences too many. The batch is therefore
    compacted when more than 1 / `COMPACTION` of its sentences are done, and not at each position. `results`
    are of all sentences, also those that have left the batch.
    """
    batch = num_active(beams)
    least_active = tf.maximum(1, batch - batch // COMPACTION)
    (beams,) = tf.while_loop(
        lambda beams: num_active(beams) >= least_active,
        lambda beams: (step(sentences, beams),),
        (beams,),
        shape_invariants=(shape_invariants(beams),),
    )
    results = record_finished(results, sentences, beams)
    sentences, beams = compact(sentences, beams)
    return sentences, beams, results


def record_finished(results: Results, sentences: Sentences, beams: Beams) -> Results:
    """Writes the finished hypotheses of the batch to its rows of `results`."""
    padding = current_length(beams) - tf.shape(results.seq)[2]
    seq = tf.pad(results.seq, [[0, 0], [0, 0], [0, padding]], constant_values=PAD)
    return Results(
        tf.tensor_scatter_nd_update(seq, sentences.indices, beams.finished_seq),
        tf.tensor_scatter_nd_update(results.scores, sentences.indices, beams.finished_scores),
    )


def compact(sentences: Sentences, beams: Beams) -> tuple[Sentences, Beams]:
    """Removes sentences that are done from the batch."""
    active = tf.where(is_active(beams))[:, 0]
    return tf.nest.map_structure(
        lambda x: x if x.shape.rank == 0 else tf.gather(x, active), (sentences, beams)
    )


def drop_hidden_memory(state: DecoderState) -> DecoderState:
    """Drops leading cache entries that are outside every hypothesis's attention window."""
    seen = tf.reduce_any(state.self_bias > MASKED / 2, axis=[0, 1])  # [memory]
    first = tf.argmax(tf.cast(seen, tf.int32), output_type=tf.int32)
    return state._replace(
        self_caches=tf.nest.map_structure(lambda x: x[:, :, first:], state.self_caches),
        self_bias=state.self_bias[:, :, first:],
    )
