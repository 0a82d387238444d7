"""Lexically constrained beam search: all outputs of a sentence have given phrases, and lack others.

A hypothesis is extended by its best tokens, and by the next token of each phrase that it lacks. Hypotheses
that lack equally many tokens of phrases form a bank. The beam is dealt out to the banks in turns, so that
each of them has places as long as it has candidates (`choose`). A phrase that breaks off is undone, since the
state of each phrase's automaton is kept (see `phrases`). EOS comes only when all phrases are there; and when
the remaining positions only just suffice for what is missing, only that is allowed.

References: Post and Vilar, 2018, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation for
Neural Machine Translation"; Hu et al., 2019, "Improved Lexically Constrained Decoding for Translation and
Monolingual Rewriting".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from t2t_revival.addons.lexical.phrases import OTHER_CLASSES
from t2t_revival.addons.lexical.tables import LexicalState, LexicalTables
from t2t_revival.data.vocabulary.text_encoder import EOS, PAD
from t2t_revival.decoding.hypothesis_scores import NEG_INF, TopK
from t2t_revival.decoding.search.beam_search import grow_finished, is_done, keep_first, top_logits
from t2t_revival.decoding.search.beams import Beams, Sentences, current_length, select_parents
from t2t_revival.decoding.search.tf_workarounds import max_or_one


class Candidates(NamedTuple):
    """Extensions of the hypotheses of each sentence, [batch, candidates].

    Attributes:
        tokens: int32.
        log_probs: float32; `NEG_INF` marks those that are not allowed.
        parents: index of the hypothesis, int32.
        bank: the more tokens of phrases are there, the larger; int32.
        lexical: state after the token, [batch, candidates, phrases].
    """

    tokens: Any
    log_probs: Any
    parents: Any
    bank: Any
    lexical: LexicalState


def initial_state(tables: LexicalTables) -> LexicalState:
    """Returns the state of one empty hypothesis per sentence."""
    needed = tables.required[:, None]
    return LexicalState(tf.zeros_like(needed), needed)


def grow_lexical(
    token_classes: Any,
    beams: Beams,
    logits: Any,
    sentences: Sentences,
    allowed: Any = None,
    *,
    early_stopping: bool = False,
) -> Beams:
    """Extends the hypotheses of all sentences by a position, as `beam_search.grow` does.

    Args:
        token_classes: class of each token that is in no phrase, int32 [vocab].
        beams: see `beam_search.grow`, as for the others.
        logits: [batch, beams, vocab].
        sentences: the batch.
        allowed: tokens that are allowed. Those of phrases always are.
        early_stopping: see `is_done`.
    """
    logits = tf.cast(logits, tf.float32)
    beam_size = sentences.settings.beam_size
    tokens, log_probs = extend(beams, logits, sentences, beam_size, allowed)
    candidates = judge(tokens, log_probs, beams, sentences, token_classes)
    places, log_probs = choose(candidates, beam_size)
    length, num_alive = current_length(beams) + 1, tf.shape(places)[1] // 2
    parents, new_tokens = (
        tf.gather(x, places, batch_dims=1) for x in (candidates.parents, candidates.tokens)
    )
    seq = tf.gather(beams.alive_seq, parents, batch_dims=1)
    seq = tf.concat([seq, new_tokens[:, :, None]], axis=2)
    topk = TopK(seq, log_probs, new_tokens == EOS, parents)
    finished_seq, finished_scores = grow_finished(beams, topk, sentences)
    alive_log_probs = log_probs[:, :num_alive]
    done = is_done(alive_log_probs, finished_scores, length, sentences, early_stopping)
    return select_parents(beams, parents[:, :num_alive])._replace(
        last_ids=new_tokens[:, :num_alive],
        alive_seq=seq[:, :num_alive],
        alive_log_probs=tf.where(done, NEG_INF, alive_log_probs),
        finished_seq=finished_seq,
        finished_scores=finished_scores,
        lexical=tf.nest.map_structure(
            lambda x: tf.gather(x, places[:, :num_alive], batch_dims=1), candidates.lexical
        ),
    )


def extend(beams: Beams, logits: Any, sentences: Sentences, beam_size: Any, allowed: Any) -> tuple[Any, Any]:
    """Returns tokens and log-probabilities of candidates, both [batch, beams, tokens + phrases + 1].

    They are the best tokens of each hypothesis, the next token of each phrase, and EOS at the last position.
    """
    state, tables = beams.lexical, sentences.lexical
    k = tf.minimum(2 * max_or_one(beam_size) + 2, tf.shape(logits)[2])  # PAD and EOS may be among them
    values, tokens, log_sum = top_logits(logits, k, allowed)
    if beam_size.shape.rank:  # of each sentence
        values = tf.where(tf.range(k) < 2 * beam_size[:, :, None] + 2, values, NEG_INF)
    values = tf.where(tokens == PAD, NEG_INF, values)

    pending = look_up(tables.gains, state.states) == tables.costs[:, None]
    lacks = state.needed > tf.cast(pending, tf.int32)  # [batch, beams, phrases]
    is_last = current_length(beams) + 1 >= sentences.max_lengths  # [batch, 1]
    ends = may_end(beams, sentences) & is_last
    next_tokens = look_up(tables.next_tokens, state.states)
    more = tf.concat([next_tokens, tf.fill(tf.concat([tf.shape(ends), [1]], 0), EOS)], axis=2)
    exists = tf.concat([lacks, ends[:, :, None]], axis=2)

    every, valid = tf.concat([tokens, more], axis=2), tf.concat([values > NEG_INF, exists], axis=2)
    same = (more[:, :, :, None] == every[:, :, None]) & valid[:, :, None]
    before = tf.range(tf.shape(every)[2]) < k + tf.range(tf.shape(more)[2])[:, None]
    exists &= ~tf.reduce_any(same & before, axis=3)
    values = tf.concat([values, tf.where(exists, tf.gather(logits, more, batch_dims=2), NEG_INF)], axis=2)
    return every, values - log_sum + beams.alive_log_probs[:, :, None]


def judge(tokens: Any, log_probs: Any, beams: Beams, sentences: Sentences, token_classes: Any) -> Candidates:
    """Returns the candidates of `extend`, [batch, candidates], with their banks; forbids some of them."""
    state, tables = beams.lexical, sentences.lexical
    batch, num_beams, width = tf.unstack(tf.shape(tokens))
    parents = tf.broadcast_to(tf.repeat(tf.range(num_beams), width), [batch, num_beams * width])
    tokens, log_probs = (tf.reshape(x, [batch, num_beams * width]) for x in (tokens, log_probs))
    before = tf.nest.map_structure(lambda x: tf.repeat(x, width, axis=1), state)
    is_eos = tokens == EOS

    steps = steps_of(tables, before.states, classes_of(tokens, tables, token_classes))
    emitted = steps % 2
    after = LexicalState(steps // 2, tf.maximum(before.needed - emitted, 0))
    breach = tf.reduce_any((emitted > 0) & tables.forbidden[:, None], axis=2)
    missing = count_missing(after, tables)
    room = sentences.max_lengths - current_length(beams) - 1  # [batch, 1]
    fits = ~breach & (missing + tables.reserved <= room)
    ends = tf.gather(may_end(beams, sentences), parents, batch_dims=1)

    total = tf.reduce_sum(tables.required * tables.costs, axis=1, keepdims=True)
    met = tf.where(is_eos, total, tf.clip_by_value(total - missing, 0, total))
    at_risk = tf.reduce_any(look_up(tables.ended, after.states) & tables.forbidden[:, None], axis=2)
    bank = 2 * met + tf.cast(is_eos | ~at_risk, tf.int32)
    log_probs = tf.where(tf.where(is_eos, ends, fits), log_probs, NEG_INF)
    return Candidates(tokens, log_probs, parents, bank, after)


def choose(candidates: Candidates, beam_size: Any) -> tuple[Any, Any]:
    """Returns places and log-probabilities of the next alive hypotheses, and then of as many finished ones.

    Both are [batch, 2 * beams], best first. A candidate with EOS is finished if it is among the
    2 * beam_size best of its bank, as in `grow_topk`.
    """
    count = tf.shape(candidates.tokens)[1]
    log_probs, order = tf.math.top_k(candidates.log_probs, count)
    bank = tf.gather(candidates.bank, order, batch_dims=1)
    is_eos = tf.gather(candidates.tokens, order, batch_dims=1) == EOS
    of_alive = tf.where(is_eos, NEG_INF, log_probs)
    banks = tf.reduce_max(bank) + 1
    rank = rank_in_bank(bank, banks)
    width = tf.minimum(max_or_one(beam_size), count)

    of_finished = tf.where(is_eos & (rank < 2 * beam_size), log_probs, NEG_INF)
    finished_before = tf.cumsum(tf.cast(is_eos, tf.int32), axis=1, exclusive=True)
    bank_of_eos = tf.reduce_max(tf.where(is_eos, bank, -1), axis=1, keepdims=True)
    rank -= tf.where(bank == bank_of_eos, finished_before, 0)
    turn = rank * banks + banks - 1 - bank  # the best of each bank, then the second ones
    turn = tf.where(of_alive > NEG_INF, turn, count * banks)
    _, dealt = tf.math.top_k(-turn, width)
    of_dealt = keep_first(tf.gather(of_alive, dealt, batch_dims=1), beam_size)
    alive_log_probs, best = tf.math.top_k(of_dealt, width)
    alive = tf.gather(dealt, best, batch_dims=1)
    finished_log_probs, finished = tf.math.top_k(of_finished, width)
    places = tf.gather(order, tf.concat([alive, finished], axis=1), batch_dims=1)
    finished_log_probs = keep_first(finished_log_probs, beam_size)
    return places, tf.concat([alive_log_probs, finished_log_probs], axis=1)


def rank_in_bank(bank: Any, banks: Any) -> Any:
    """Returns how many candidates of the same bank come before each, int32 [batch, candidates]."""
    members = tf.one_hot(bank, banks, dtype=tf.int32)  # [batch, candidates, banks]
    return tf.reduce_sum(members * tf.cumsum(members, axis=1, exclusive=True), axis=2)


def may_end(beams: Beams, sentences: Sentences) -> Any:
    """Returns whether EOS may come next, bool [batch, beams].

    All phrases are there, and no avoided one. An output that lacks avoided phrases is not empty if there is
    room for a token.
    """
    tables = sentences.lexical
    ended = look_up(tables.ended, beams.lexical.states)
    lacks = beams.lexical.needed > tf.cast(ended, tf.int32)
    is_empty = (current_length(beams) == 0) & (sentences.max_lengths > 1)  # [batch, 1]
    fails = lacks | ((ended | is_empty[:, :, None]) & tables.forbidden[:, None])
    return ~tf.reduce_any(fails, axis=2)


def count_missing(state: LexicalState, tables: LexicalTables) -> Any:
    """Returns how many tokens suffice for what is missing, int32 [batch, beams].

    One phrase that is begun is completed, another one shares tokens with it, and all others come after them.
    """
    needed, phrases = state.needed > 0, tf.shape(state.needed)[2]
    overlaps = tf.reshape(tables.overlaps, [-1, 1, phrases, phrases])
    shared = tf.reduce_max(tf.where(needed[:, :, None], overlaps, 0), axis=3)  # [batch, beams, phrases]
    gains = tf.where(needed, look_up(tables.gains, state.states) + shared, tf.int32.min)
    gain = tf.where(tf.reduce_any(needed, axis=2), tf.reduce_max(gains, axis=2), 0)
    return tf.reduce_sum(state.needed * tables.costs[:, None], axis=2) - gain


def look_up(table: Any, states: Any) -> Any:
    """Returns the values of states, [batch, beams, phrases], in a table, [batch, phrases * states]."""
    phrases = tf.shape(states)[2]
    first = tf.range(phrases) * (tf.shape(table)[1] // phrases)
    return tf.gather(table, states + first, batch_dims=1)


def steps_of(tables: LexicalTables, states: Any, classes: Any) -> Any:
    """Returns the transitions of states, [batch, beams, phrases], by tokens of classes, [batch, beams]."""
    phrases = tf.shape(states)[2]
    first = tf.range(phrases) * (tf.shape(tables.gains)[1] // phrases)
    num_classes = tf.shape(tables.alphabet)[1] + OTHER_CLASSES
    return tf.gather(tables.transitions, (states + first) * num_classes + classes[:, :, None], batch_dims=1)


def classes_of(tokens: Any, tables: LexicalTables, token_classes: Any) -> Any:
    """Returns the classes of tokens, [batch, candidates], for the automata of their sentences."""
    same = tokens[:, :, None] == tables.alphabet[:, None]  # [batch, candidates, alphabet]
    own = OTHER_CLASSES + tf.argmax(tf.cast(same, tf.int32), axis=2, output_type=tf.int32)
    return tf.where(tf.reduce_any(same, axis=2), own, tf.gather(token_classes, tokens))
