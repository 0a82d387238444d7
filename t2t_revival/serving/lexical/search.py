"""Lexically constrained search in an exported graph, from phrases as strings to ids.

It does what `decoding.constrained_lines` does in Python, but for one thing: where an output has no room for
all of its phrases, those that share words are not joined before the last ones are left out.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_revival.data.vocabulary.text_encoder import PAD, TextEncoder
from t2t_revival.decoding.beams import NEG_INF, SearchSettings
from t2t_revival.decoding.constrained_lines import ATTEMPTS
from t2t_revival.decoding.decoding_loop import DecodingLoop
from t2t_revival.decoding.lexical_search import grow_lexical
from t2t_revival.decoding.phrases import AT_ONCE, Spelling
from t2t_revival.decoding.tf_workarounds import max_or_one
from t2t_revival.serving.lexical.forms import (
    ANYWHERE,
    FILLER,
    Forms,
    GraphSpelling,
    joined,
    linear,
)
from t2t_revival.serving.lexical.tables import LineTables
from t2t_revival.serving.lexical.texts import first_places, has_phrase

CHOOSE = "to be in the output, with a phrase that is to be avoided: choose one:"


class _Pending(NamedTuple):
    """Lines whose outputs have an avoided phrase, or that have not been decoded; [lines, ...].

    Attributes:
        rows: of the results, int32.
        avoided: forms of the avoided phrases, [lines, phrases, ...].
        forbidden: which of them are still avoided, bool [lines, phrases].
    """

    rows: Any
    avoided: Forms
    forbidden: Any


class PhraseSearch:
    """Finds the most probable outputs that have given phrases, and lack others.

    Args:
        loop: of a beam search, without a shortlist and not for trees.
        vocabulary: of the outputs.
        early_stopping: see `is_done`.
    """

    def __init__(self, loop: DecodingLoop, vocabulary: TextEncoder, early_stopping: bool) -> None:
        spelling = Spelling(vocabulary)
        self._loop, self._vocabulary = loop, vocabulary
        self._classes, self._closing = spelling.classes, int(spelling.closing)
        self._spelling = GraphSpelling(vocabulary)
        self._grow = partial(grow_lexical, early_stopping=early_stopping)

    def __call__(
        self, sources: Any, phrases: Any, avoid: Any, settings: SearchSettings
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Searches for the best outputs of each line.

        Args:
            sources: int32 [lines, source], at least one line.
            phrases: string [lines, phrases], each to be in the output as often as it is there; "" is none.
            avoid: string [lines, phrases].
            settings: each [lines, 1].

        Returns:
            Ids, int32 [lines, n, length], and scores, float32 [lines, n]; see `BeamSearch.__call__`.

        Raises:
            InvalidArgumentError: phrases contradict each other, the vocabulary cannot spell one, or one is
                longer than the output may be.
        """
        classes = tf.constant(self._classes)
        lines, number = tf.unstack(tf.shape(phrases))
        _, rooms = self._loop.bounds(sources, settings)  # [lines, 1]
        is_first, equal = first_places(phrases)
        is_avoided, _ = first_places(avoid)
        with tf.control_dependencies(_contradictions(phrases, avoid)):
            wanted = self._forms(phrases, is_first)
            avoided = self._spelling.lattices(self._forms(avoid, is_avoided))
        tables = LineTables(wanted, lines, classes, self._closing)
        kept = _kept(tables, is_first, equal, rooms[:, 0], phrases)
        required = _required(is_first, equal, tf.range(number) < kept[:, None])

        def search(pending: _Pending, ids: Any, scores: Any, attempt: Any) -> tuple[_Pending, Any, Any, Any]:
            rows, count = pending.rows, tf.shape(pending.rows)[0]
            needed = tf.gather(required, rows)
            forms = joined(_of_lines(wanted, rows, lines), pending.avoided, axis=1)
            own = LineTables(_flat(forms), count, classes, self._closing)
            forbidden = tf.concat([tf.zeros_like(needed, tf.bool), pending.forbidden], axis=1)
            needed = tf.concat([needed, tf.zeros_like(pending.forbidden, tf.int32)], axis=1)
            own_tables = own.tables(needed, forbidden, tf.gather(rooms, rows))
            of_rows = SearchSettings(*(tf.gather(x, rows) for x in settings))
            grow = partial(self._grow, classes)
            new_ids, new_scores = self._loop.decode_lexical(
                grow, tf.gather(sources, rows), of_rows, own_tables
            )
            ids, scores = _update(ids, scores, rows, new_ids, new_scores, attempt == 0)
            pending = self._stricter(pending, tf.gather(avoid, rows), new_ids, new_scores)
            return pending, ids, scores, attempt + 1

        start = _Pending(tf.range(lines), _of_lines(avoided, tf.range(lines), lines), is_avoided)
        n = max_or_one(settings.n)
        variables = start, tf.zeros([lines, n, 1], tf.int32), tf.fill([lines, n], NEG_INF), 0
        _, ids, scores, _ = tf.while_loop(
            lambda pending, _, __, attempt: (attempt < ATTEMPTS) & (tf.size(pending.rows) > 0),
            search,
            variables,
            shape_invariants=tf.nest.map_structure(_any_shape, variables),
        )
        return ids, scores

    def _forms(self, phrases: Any, exist: Any) -> Forms:
        """Spells phrases, string [lines, phrases], of which some exist; [lines * phrases, ...]."""
        flat = tf.reshape(tf.where(exist, phrases, ""), [-1])
        forms = self._spelling.forms(flat)
        spelled = self._spelling.can_spell(flat, forms)
        message = "the vocabulary cannot spell a phrase: leave it out, or write it otherwise:"
        with tf.control_dependencies([_assert(spelled, message, flat)]):
            return forms._replace(ids=tf.identity(forms.ids), tokens=tf.identity(forms.tokens))

    def _stricter(self, pending: _Pending, phrases: Any, ids: Any, scores: Any) -> _Pending:
        """Returns the lines of another search, and how strict it is; see `constrained_lines.stricter`."""
        ids = tf.pad(ids, [[0, 0], [0, 0], [0, 1]])  # at least one token, for the ops that follow
        lines, n, length = tf.unstack(tf.shape(ids))
        avoided, forbidden = pending.avoided, pending.forbidden
        count = tf.shape(forbidden)[1]
        flat = tf.reshape(ids, [-1, length])
        every = tf.repeat(tf.where(forbidden, phrases, ""), n, axis=0)  # [lines * n, phrases]
        exists = tf.reshape(scores > NEG_INF, [-1, 1])
        has = has_phrase(self._decode(flat), every) & exists
        found = tf.reduce_any(tf.reshape(has, [lines, n, count]), axis=1)  # [lines, phrases]

        nothing = scores[:, :1] == NEG_INF
        is_form = avoided.ends > 0
        strict = tf.reduce_all(~is_form | (avoided.after == AT_ONCE), axis=[1, 2])[:, None]
        new = self._other_forms(flat, every, has, avoided, n)
        has_new = tf.reduce_any(new.ends > 0, axis=2)  # [lines, phrases]
        at_once = (nothing | (found & ~has_new)) & forbidden
        changed = _with_dimensions(_flat(avoided).at_once(tf.reshape(at_once, [-1])), lines)
        still = forbidden & ~(nothing & strict)
        again = tf.reduce_any(forbidden, axis=1) & (nothing[:, 0] | tf.reduce_any(found, axis=1))
        rest = _Pending(pending.rows, joined(changed, new, axis=2), still)
        return tf.nest.map_structure(lambda x: tf.boolean_mask(x, again), rest)

    def _other_forms(self, ids: Any, phrases: Any, has: Any, avoided: Forms, n: Any) -> Forms:
        """Returns forms in which outputs have avoided phrases otherwise; [lines, phrases, n, ...].

        Args:
            ids: of outputs, int32 [lines * n, length].
            phrases: avoided ones beside each, string [lines * n, phrases].
            has: which outputs have them, bool [lines * n, phrases].
            avoided: their present forms, [lines, phrases, ...].
            n: outputs of each line.
        """
        cases = tf.where(has)  # [cases, 2]
        size, length = tf.shape(cases)[0], tf.shape(ids)[1]
        own, texts = tf.gather(ids, cases[:, 0]), tf.gather_nd(phrases, cases)
        places = tf.range(length)

        def found(begins: Any, ends: Any) -> Any:
            """Returns in which parts of the outputs the phrase is; all [cases, parts]."""
            inside = (places >= begins[:, :, None]) & (places < ends[:, :, None])
            parts = tf.reshape(tf.where(inside, own[:, None], PAD), [-1, length])
            each = tf.repeat(texts, length)[:, None]
            return tf.reshape(has_phrase(self._decode(parts), each), [size, length])

        shape = [size, length]
        first = found(tf.zeros(shape, tf.int32), tf.broadcast_to(places + 1, shape))
        ends = tf.reduce_min(tf.where(first, places + 1, length), axis=1)[:, None]  # [cases, 1]
        last = found(tf.broadcast_to(places, shape), tf.broadcast_to(ends, shape)) & (places < ends)
        begins = tf.reduce_max(tf.where(last, places, 0), axis=1)[:, None]
        moved = tf.gather(tf.pad(own, [[0, 0], [0, length]]), begins + places, batch_dims=1)
        forms = tf.where(places < ends - begins, moved, PAD)[:, : max_or_one(ends - begins)]

        line, output = cases[:, 0] // tf.cast(n, tf.int64), cases[:, 0] % tf.cast(n, tf.int64)
        place = tf.stack([line, cases[:, 1]], axis=1)
        present = tf.where(((avoided.at_start == ANYWHERE) & ~avoided.after_run)[..., None], avoided.ids, PAD)
        present = tf.gather_nd(present, place)  # [cases, forms, length]
        longest = tf.maximum(tf.shape(forms)[1], tf.shape(present)[2])
        wide = tf.pad(forms, [[0, 0], [0, longest - tf.shape(forms)[1]]])
        present = tf.pad(present, [[0, 0], [0, 0], [0, longest - tf.shape(present)[2]]])
        is_new = ~tf.reduce_any(tf.reduce_all(present == wide[:, None], axis=2), axis=1)

        shape = [*tf.unstack(tf.shape(avoided.ends)[:2]), n]
        index = tf.concat([place, output[:, None]], axis=1)
        rows = tf.where(is_new[:, None], forms, PAD)
        table = tf.scatter_nd(tf.cast(index, tf.int32), rows, [*shape, tf.shape(rows)[1]])
        after = tf.broadcast_to(avoided.after[:, :, :1], shape)
        no = tf.zeros(shape, tf.bool)
        new = linear(
            _merged(table), tf.fill([shape[0] * shape[1], n], ANYWHERE), *map(_merged, (no, after, no))
        )
        return _with_dimensions(new, shape[0])

    def _decode(self, ids: Any) -> Any:
        return self._vocabulary.graph.decode(tf.RaggedTensor.from_tensor(ids))


def _kept(tables: LineTables, is_first: Any, equal: Any, rooms: Any, phrases: Any) -> Any:
    """Returns how many of the phrases of each line there is room for, from the first on, int32 [lines].

    Raises:
        InvalidArgumentError: there is no room for a phrase alone.
    """
    number = tf.shape(phrases)[1]
    order = tf.range(number)
    counts = _required(is_first[:, None], equal[:, None], order[None] <= order[:, None])  # of the first ones
    fits = tables.lengths(counts) <= rooms[:, None]  # [lines, phrases]
    alone = tf.where(is_first[:, None], tf.eye(number, dtype=tf.int32), 0)
    too_long = is_first & (tables.lengths(alone) > rooms[:, None])
    message = "a phrase is longer than the output may be: give a larger extra_length:"
    with tf.control_dependencies([_assert(~too_long, message, phrases)]):
        return tf.reduce_sum(tf.math.cumprod(tf.cast(fits, tf.int32), axis=1), axis=1)


def _required(is_first: Any, equal: Any, kept: Any) -> Any:
    """Returns how often phrases are required, int32 [lines, ..., phrases]; 0 for repetitions.

    `kept` tells which of the phrases count.
    """
    times = tf.reduce_sum(tf.cast(equal & kept[..., None, :], tf.int32), axis=-1)
    return tf.where(is_first, times, 0)


def _contradictions(phrases: Any, avoid: Any) -> list[Any]:
    """Returns assertions that no phrase has an avoided one; both string [lines, phrases]."""
    number = tf.shape(phrases)[1]
    flat = tf.reshape(phrases, [-1])
    texts = tf.where(flat == "", FILLER, flat)
    has = has_phrase(texts, tf.repeat(avoid, number, axis=0)) & (flat != "")[:, None]
    return [_assert(~tf.reduce_any(has, axis=1), CHOOSE, flat)]


def _assert(holds: Any, message: str, phrases: Any) -> Any:
    """Returns an assertion that something holds of all phrases; its message has the first exception."""
    wrong = tf.boolean_mask(phrases, ~holds)[:1]
    return tf.Assert(tf.reduce_all(holds), [message, wrong], summarize=1)


def _update(
    ids: Any, scores: Any, rows: Any, new_ids: Any, new_scores: Any, is_first: Any
) -> tuple[Any, Any]:
    """Returns results with those of some rows, unless these have no output and are not the first ones."""
    width = tf.maximum(tf.shape(ids)[2], tf.shape(new_ids)[2])
    ids, new_ids = (tf.pad(x, [[0, 0], [0, 0], [0, width - tf.shape(x)[2]]]) for x in (ids, new_ids))
    better = is_first | (new_scores[:, 0] > NEG_INF)
    places = tf.boolean_mask(rows, better)[:, None]
    new = (tf.boolean_mask(x, better) for x in (new_ids, new_scores))
    pairs = zip((ids, scores), new, strict=True)
    found = [tf.tensor_scatter_nd_update(old, places, values) for old, values in pairs]
    return found[0], found[1]


def _of_lines(forms: Forms, rows: Any, lines: Any) -> Forms:
    """Returns the forms of some lines, [rows, phrases, ...]."""
    return Forms(*(tf.gather(x, rows) for x in _with_dimensions(forms, lines)))


def _with_dimensions(forms: Forms, lines: Any) -> Forms:
    """Returns forms, [lines * phrases, ...], as [lines, phrases, ...]."""
    phrases = tf.shape(forms.ends)[0] // tf.maximum(lines, 1)
    return Forms(*(tf.reshape(x, tf.concat([[lines, phrases], tf.shape(x)[1:]], 0)) for x in forms))


def _flat(forms: Forms) -> Forms:
    """Returns forms, [lines, phrases, ...], as [lines * phrases, ...]."""
    return Forms(*map(_merged, forms))


def _merged(rows: Any) -> Any:
    shape = tf.shape(rows)
    return tf.reshape(rows, tf.concat([[shape[0] * shape[1]], shape[2:]], 0))


def _any_shape(tensor: Any) -> tf.TensorShape:
    return tf.TensorShape([None] * tf.convert_to_tensor(tensor).shape.rank)
