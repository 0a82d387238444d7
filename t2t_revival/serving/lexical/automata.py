"""Automata of phrases as TensorFlow ops; see `phrases.Automaton`, which Python makes in the same way.

A state is the set of forms that have been begun, with their places. All states that can follow a state are
found at once, from those of the empty output on, for all phrases of a batch together. A set is told from
another by the sum of random 64-bit numbers of its members, as in Zobrist's hashing of chess positions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from t2t_revival.decoding.phrases import (
    ANYTHING,
    AT_ONCE,
    BEGINS_WORD,
    BOUNDARY,
    ENDS_RUN,
    NOTHING,
    OTHER_CLASSES,
)
from t2t_revival.decoding.tf_workarounds import shape_invariants
from t2t_revival.serving.lexical.forms import ANYWHERE, AT_START, NO_TOKEN, Forms, first_true

LARGE = 2**30
ANY, CLOSED, EMPTY = (int(x) for x in (0x1E3779B97F4A7C15, 0x2545F4914F6CDD1D, 0x5851F42D4C957F2D))
SEED = (1, 2)


class GraphAutomata(NamedTuple):
    """Automata of phrases; see `phrases.Automaton`. The first dimension is phrases.

    Attributes:
        next_states: int32 [phrases, states, classes].
        emits: bool [phrases, states, classes].
        ended: bool [phrases, states].
        gains: int32 [phrases, states].
        next_tokens: int32 [phrases, states].
        costs: int32 [phrases].
    """

    next_states: Any
    emits: Any
    ended: Any
    gains: Any
    next_tokens: Any
    costs: Any


class _Found(NamedTuple):
    """States found so far, [phrases, states, ...], and the steps of those that are done."""

    items: Any  # bool [phrases, states, forms * places]
    closed: Any  # bool
    exists: Any  # bool
    keys: Any  # int64
    next_keys: Any  # int64 [phrases, done, classes]
    emits: Any  # bool [phrases, done, classes]


class _Items:
    """Forms with their places, as one dimension.

    Args:
        forms: of phrases.
        alphabet: tokens that may follow, int32 [phrases, tokens], padded with `NO_TOKEN`.
        classes: of all tokens, int32 [vocab]; see `Spelling.classes`.
    """

    def __init__(self, forms: Forms, alphabet: Any, classes: Any) -> None:
        self.forms = forms
        phrases, self.count, self.edges = tf.unstack(tf.shape(forms.tokens))
        self.places = tf.reduce_max(forms.ends) + 1
        first = (tf.range(self.count) * self.places)[:, None]
        self.size = self.count * self.places
        flat = [phrases, self.count * self.edges]
        is_edge = forms.tokens != NO_TOKEN
        self.sources = tf.reshape(tf.where(is_edge, forms.sources + first, 0), flat)
        self.begins = tf.reshape(forms.sources == 0, flat)
        targets = tf.reshape(tf.where(is_edge, forms.targets + first, 0), flat)
        same = tf.reshape(forms.tokens, flat)[:, :, None] == alphabet[:, None]  # [.., edges, tokens]
        self.by_class = OTHER_CLASSES + tf.argmax(tf.cast(same, tf.int32), axis=2, output_type=tf.int32)
        self.is_edge = tf.reshape(is_edge, flat)
        self.classes = OTHER_CLASSES + tf.shape(alphabet)[1]
        rows = tf.range(phrases)[:, None] * self.classes + self.by_class
        self.targets = rows * self.size + targets  # in [phrases * classes * items]
        kinds = tf.gather(classes, tf.maximum(alphabet, 0))
        others = tf.broadcast_to(tf.range(OTHER_CLASSES), [phrases, OTHER_CLASSES])
        self.kinds = tf.concat([others, kinds], axis=1)  # [phrases, classes]
        places = tf.range(self.places)
        self.left = self._of_items(forms.ends[:, :, None] - places)
        self.after = self._of_items(tf.repeat(forms.after[:, :, None], self.places, axis=2))
        self.ends = (self.left == 0) & (
            self._of_items(tf.repeat(forms.ends[:, :, None], self.places, axis=2)) > 0
        )
        ids = tf.pad(forms.ids, [[0, 0], [0, 0], [0, self.places]])[:, :, : self.places]
        self.tokens = self._of_items(ids)

    def _of_items(self, rows: Any) -> Any:
        return tf.reshape(rows, [-1, self.size])

    def may_begin(self, at_start: Any, closed: Any) -> Any:
        """Returns which forms may begin after states, bool [phrases, states, forms]."""
        forms = self.forms
        wanted = forms.at_start[:, None]
        fits = (wanted == ANYWHERE) | ((wanted == AT_START) == at_start[:, :, None])
        return fits & (closed[:, :, None] | ~forms.after_run[:, None]) & (forms.ends > 0)[:, None]

    def complete(self, items: Any, after: int) -> Any:
        """Returns whether states have a complete form of a kind, bool [phrases, states, 1]."""
        return tf.reduce_any(items & (self.ends & (self.after == after))[:, None], axis=2, keepdims=True)

    def step(self, items: Any, at_start: Any, closed: Any) -> tuple[Any, Any]:
        """Returns the items after each class, [phrases, states, classes, items], and which steps emit."""
        begins_word = self.kinds[:, None] >= BEGINS_WORD
        emits = self.complete(items, ANYTHING) | (self.complete(items, BOUNDARY) & begins_word)
        fresh = tf.repeat(self.may_begin(at_start, closed), self.edges, axis=2) & self.begins[:, None]
        begun = tf.transpose(tf.gather(tf.transpose(items, [0, 2, 1]), self.sources, batch_dims=1), [0, 2, 1])
        begun &= ~self.begins[:, None]
        emitting = tf.gather(tf.transpose(emits, [0, 2, 1]), self.by_class, batch_dims=1)
        active = fresh | (begun & ~tf.transpose(emitting, [0, 2, 1]))  # [phrases, states, edges]
        after = self._moved(active & self.is_edge[:, None])
        once = after & (self.ends & (self.after == AT_ONCE))[:, None, None]
        at_once = tf.reduce_any(once, axis=3)
        return after & ~at_once[:, :, :, None], emits | at_once

    def _moved(self, active: Any) -> Any:
        """Returns the items to which active edges lead, by class: bool [phrases, states, classes, items]."""
        phrases, states, edges = tf.unstack(tf.shape(active))
        values = tf.reshape(tf.transpose(tf.cast(active, tf.int32), [0, 2, 1]), [phrases * edges, states])
        shape = [phrases, self.classes, self.size, states]
        found = tf.scatter_nd(tf.reshape(self.targets, [-1, 1]), values, [tf.reduce_prod(shape[:3]), states])
        return tf.transpose(tf.reshape(found, shape) > 0, [0, 3, 1, 2])


def automata_of(forms: Forms, alphabet: Any, classes: Any, closing: int) -> GraphAutomata:
    """Returns automata of phrases.

    Args:
        forms: of the phrases.
        alphabet: tokens of the phrases beside each, int32 [phrases, tokens], padded with `NO_TOKEN`.
        classes: of all tokens, int32 [vocab].
        closing: see `Spelling`.
    """
    items = _Items(forms, alphabet, classes)
    found = _states(items)
    states = tf.shape(found.keys)[1]
    same = found.next_keys[:, :, :, None] == found.keys[:, None, None]
    next_states = tf.argmax(tf.cast(same, tf.int32), axis=3, output_type=tf.int32)
    ended = tf.reduce_any(found.items & items.ends[:, None], axis=2)
    at_start = tf.broadcast_to(tf.range(states) == 0, tf.shape(found.closed))
    may_begin = items.may_begin(at_start, found.closed)
    return GraphAutomata(next_states, found.emits, ended, *_ways(items, found.items, may_begin, closing))


def _states(items: _Items) -> _Found:
    """Finds all states and their steps."""
    phrases = tf.shape(items.kinds)[0]
    classes = tf.shape(items.kinds)[1]
    numbers = tf.random.stateless_uniform([items.size], SEED, None, None, tf.int64)
    yes = tf.ones([phrases, 1], tf.bool)
    start = _Found(
        items=tf.zeros([phrases, 1, items.size], tf.bool),
        closed=yes,
        exists=yes,
        keys=tf.fill([phrases, 1], tf.constant(EMPTY, tf.int64)),
        next_keys=tf.zeros([phrases, 0, classes], tf.int64),
        emits=tf.zeros([phrases, 0, classes], tf.bool),
    )

    def step(found: _Found) -> tuple[_Found]:
        done = tf.shape(found.emits)[1]
        latest, closed, exists = (x[:, done:] for x in found[:3])
        at_start = tf.broadcast_to(tf.range(done, tf.shape(found.keys)[1]) == 0, tf.shape(closed))
        after, emits = items.step(latest, at_start, closed)
        closes = tf.broadcast_to((items.kinds % 2 == ENDS_RUN)[:, None], tf.shape(emits))
        keys = tf.reduce_sum(tf.where(after, numbers, 0), axis=3) + ANY
        keys += tf.where(closes, tf.constant(CLOSED, tf.int64), 0)
        flat = tf.reshape(keys, [phrases, -1])
        known = tf.reduce_any(flat[:, :, None] == found.keys[:, None], axis=2)
        places, new = first_true(tf.repeat(exists, classes, axis=1) & ~known)
        candidates = tf.gather(flat, places, batch_dims=1)
        order = tf.range(tf.shape(places)[1])
        earlier = tf.reduce_any(
            (candidates[:, :, None] == candidates[:, None]) & (order < order[:, None]), axis=2
        )
        distinct, new = first_true(new & ~earlier)
        places = tf.gather(places, distinct, batch_dims=1)

        def of_new(rows: Any) -> Any:
            return tf.gather(rows, places, batch_dims=1)

        new_items = of_new(tf.reshape(after, [phrases, -1, items.size])) & new[:, :, None]
        new_closed = of_new(tf.reshape(closes, [phrases, -1])) & new
        parts = (new_items, new_closed, new, tf.where(new, of_new(flat), 0), keys, emits)
        return (_Found(*(tf.concat(pair, 1) for pair in zip(found, parts, strict=True))),)

    (found,) = tf.while_loop(
        lambda found: tf.shape(found.emits)[1] < tf.shape(found.keys)[1],
        step,
        (start,),
        shape_invariants=(shape_invariants(start),),
    )
    return found


def _ways(items: _Items, states: Any, may_begin: Any, closing: int) -> tuple[Any, Any, Any]:
    """Returns gains, next tokens and costs; see `phrases._State.way`."""
    forms = items.forms
    lengths = tf.math.count_nonzero(forms.ids, axis=2, dtype=tf.int32)  # [phrases, forms]
    usable = (forms.after != NOTHING) & (forms.ends > 0)
    plain = usable & (forms.at_start != AT_START)
    least = tf.reduce_min(tf.where(plain, lengths, LARGE), axis=1)  # [phrases]
    ends_run = tf.cast(forms.open_end & (closing > 0), tf.int32)
    costs = tf.reduce_min(tf.where(plain, lengths + ends_run, LARGE), axis=1)

    order = lengths * items.count + tf.range(items.count)
    order = tf.where(may_begin & usable[:, None], order[:, None], LARGE)  # [phrases, states, forms]
    best = tf.argmin(order, axis=2, output_type=tf.int32)
    can_begin = tf.reduce_min(order, axis=2) < LARGE
    fresh = tf.where(can_begin, tf.gather(lengths, best, batch_dims=1), 1 + least[:, None])
    first = tf.where(can_begin, tf.gather(forms.ids[:, :, 0], best, batch_dims=1), closing)

    left = tf.where(states & (items.after != NOTHING)[:, None], items.left[:, None], LARGE)
    nearest = tf.reduce_min(left, axis=2)  # [phrases, states]
    nexts = tf.where(left == nearest[:, :, None], items.tokens[:, None], LARGE)
    begun = nearest < LARGE
    tokens = tf.where(begun & (nearest > 0), tf.reduce_min(nexts, axis=2), first)
    exists = tf.reduce_any(plain, axis=1)
    costs = tf.where(exists, costs, 1)
    gains = tf.where(exists[:, None], costs[:, None] - tf.where(begun, nearest, fresh), 0)
    return gains, tokens, costs
