"""The loop of decoding: positions one after the other, for beam search and sampling alike.

T2T's loop keeps a batch together until its last sentence is done. Here sentences leave the batch when they
are done: see `run_until_compaction`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import PAD
from t2t_revival.decoding.hypothesis_scores import is_active
from t2t_revival.decoding.search.beams import Beams, Results, Sentences, current_length, num_active
from t2t_revival.decoding.search.tf_workarounds import shape_invariants
from t2t_revival.model import DecoderState
from t2t_revival.model.attention import MASKED

Step: TypeAlias = Callable[[Sentences, Beams], Beams]  # decodes one position
COMPACTION = 4  # the batch is compacted when more than 1 / COMPACTION of its sentences are done


def decode_all(step: Step, sentences: Sentences, beams: Beams) -> Results:
    """Decodes positions until all sentences are done."""
    variables = sentences, beams, Results(beams.finished_seq, beams.finished_scores)
    *_, results = tf.while_loop(
        lambda _, beams, __: num_active(beams) > 0,
        partial(run_until_compaction, step),
        variables,
        shape_invariants=shape_invariants(variables),
    )
    return results


def run_until_compaction(
    step: Step, sentences: Sentences, beams: Beams, results: Results
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
