"""Tables of a batch of lines with phrases, as TensorFlow ops; see `decoding.lexical_tables`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import tensorflow as tf

from t2t_revival.decoding.lexical_tables import LexicalTables
from t2t_revival.decoding.phrases import BEGINS_WORD, BOUNDARY, NOTHING, OTHER_CLASSES
from t2t_revival.serving.lexical.automata import LARGE, automata_of
from t2t_revival.serving.lexical.forms import AT_START, NO_TOKEN, Forms


class LineTables:
    """Automata of the phrases of lines.

    Args:
        forms: of all phrases, [lines * phrases, ...].
        lines: their number.
        classes: of all tokens, int32 [vocab].
        closing: see `Spelling`.
    """

    def __init__(self, forms: Forms, lines: Any, classes: Any, closing: int) -> None:
        self._lines, self._classes = lines, classes
        self._forms = forms
        self.alphabet = _alphabet(tf.reshape(forms.tokens, [lines, -1]))
        phrases = tf.shape(forms.ends)[0] // lines
        self._automata = automata_of(forms, tf.repeat(self.alphabet, phrases, axis=0), classes, closing)
        _, self._states, self._width = tf.unstack(tf.shape(self._automata.next_states))
        self._shape = [lines, phrases]

    def lengths(self, required: Any) -> Any:
        """Returns how many tokens, without EOS, outputs with phrases need, [lines, ...].

        Args:
            required: how often each phrase is needed, int32 [lines, ..., phrases].
        """
        costs = tf.reshape(self._automata.costs, self._shape)
        gains = tf.reshape(self._automata.gains[:, 0], self._shape)
        overlaps = self.overlaps
        while costs.shape.rank < required.shape.rank:
            costs, gains, overlaps = costs[:, None], gains[:, None], overlaps[:, None]
        wanted = required > 0
        pairs = wanted[..., :, None] & wanted[..., None, :]
        shared = tf.reduce_max(tf.where(pairs, overlaps, 0), axis=-1)
        most = tf.reduce_max(tf.where(wanted, gains + shared, -LARGE), axis=-1)
        most = tf.where(tf.reduce_any(wanted, axis=-1), most, 0)
        return tf.reduce_sum(costs * required, axis=-1) - most

    def tables(self, required: Any, forbidden: Any, rooms: Any) -> LexicalTables:
        """Returns tables for the search.

        Args:
            required: how often each phrase is needed, int32 [lines, phrases].
            forbidden: which phrases are avoided, bool [lines, phrases].
            rooms: maximum number of tokens of each output, EOS counted, int32 [lines, 1].
        """
        one = self._automata
        wanted = required > 0
        overlaps = tf.where(wanted[:, :, None] & wanted[:, None], self.overlaps, 0)
        reserved = self.lengths(required)[:, None] < rooms
        tables = LexicalTables(
            alphabet=self.alphabet,
            transitions=2 * one.next_states + tf.cast(one.emits, tf.int32),
            ended=one.ended,
            gains=one.gains,
            next_tokens=one.next_tokens,
            costs=one.costs,
            overlaps=overlaps,
            required=required,
            forbidden=forbidden,
            reserved=tf.cast(reserved, tf.int32),
        )
        return LexicalTables(*(tf.reshape(x, [self._lines, -1]) for x in tables))

    @cached_property
    def overlaps(self) -> Any:
        """Tokens of a second phrase that come with those of a first one, int32 [lines, phrases, phrases]."""
        lines, phrases = self._shape
        forms, one = self._forms, self._automata
        count, length = tf.shape(forms.ids)[1], tf.shape(forms.ids)[2]
        ids = tf.reshape(forms.ids, [lines, phrases, count, length])
        same = tf.reshape(ids, [lines, -1])[:, :, None] == self.alphabet[:, None]
        kinds = OTHER_CLASSES + tf.argmax(tf.cast(same, tf.int32), axis=2, output_type=tf.int32)
        kinds = tf.reshape(kinds, [lines, phrases, count, 1, length])  # the 1 is of second phrases
        automaton = tf.range(phrases)  # the second phrase

        def look_up(table: Any, places: Any) -> Any:
            return tf.gather(tf.reshape(table, [lines, -1]), places, batch_dims=1)

        closed = OTHER_CLASSES - 1
        fresh = tf.reshape(one.next_states[:, 0, closed], [lines, 1, 1, phrases])
        begins = tf.reshape(forms.at_start == AT_START, [lines, phrases, count, 1])
        state = tf.where(begins, 0, fresh)  # [lines, phrases, forms, second phrases]

        def step(place: Any, state: Any, complete: Any) -> tuple[Any, Any, Any]:
            places = ((automaton * self._states) + state) * self._width + kinds[..., place]
            exists = ids[:, :, :, place, None] > 0
            complete |= exists & look_up(one.emits, places)
            return place + 1, tf.where(exists, look_up(one.next_states, places), state), complete

        _, state, complete = tf.while_loop(
            lambda place, *_: place < length, step, (0, state, tf.zeros_like(state, tf.bool))
        )
        places = automaton * self._states + state
        gains = tf.maximum(look_up(one.gains, places), 0)
        begins_word = tf.gather(self._classes, look_up(one.next_tokens, places)) >= BEGINS_WORD
        after = tf.reshape(forms.after, [lines, phrases, count, 1])
        values = tf.where((after == BOUNDARY) & ~begins_word, 0, gains)
        values = tf.where(complete, tf.reshape(one.costs, [lines, 1, 1, phrases]), values)
        usable = (after != NOTHING) & (tf.reshape(forms.ends, [lines, phrases, count, 1]) > 0)
        values = tf.reduce_min(tf.where(usable, values, LARGE), axis=2)  # [lines, phrases, phrases]
        other = (automaton[:, None] != automaton) & (values < LARGE)
        return tf.where(other, values, 0)


def _alphabet(tokens: Any) -> Any:
    """Returns the distinct tokens of rows, int32 [rows, most], padded with `NO_TOKEN`; most is not 0."""
    tokens = tf.sort(tf.pad(tokens, [[0, 0], [0, 1]], constant_values=NO_TOKEN), direction="DESCENDING")
    repeats = tf.pad(tokens[:, 1:] == tokens[:, :-1], [[0, 0], [1, 0]])
    tokens = tf.sort(tf.where(repeats, NO_TOKEN, tokens), direction="DESCENDING")
    most = tf.reduce_max(tf.math.count_nonzero(tokens != NO_TOKEN, axis=1, dtype=tf.int32))
    return tokens[:, : tf.maximum(most, 1)]
