"""Ways to spell phrases in tokens, as TensorFlow ops; `decoding.phrases` has the same in Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.subwords_graph import are_alphanumeric
from t2t_revival.data.vocabulary.text_encoder import EOS, PAD, TextEncoder
from t2t_revival.decoding.phrases import ANYTHING, AT_ONCE, BOUNDARY, NOTHING
from t2t_revival.serving.lexical.texts import are_joining, are_unspaced, first_codes, last_codes

ANYWHERE, NOT_AT_START, AT_START = -1, 0, 1  # values of `at_start`
NO_TOKEN = -1
FILLER = "a"  # stands for an empty phrase where an op needs a text


class Forms(NamedTuple):
    """Ways to spell phrases; see `phrases.Form`. The first two dimensions are phrases and forms.

    Attributes:
        ids: tokens, int32 [.., .., length], padded with 0.
        ends: the place where a form is complete, int32; 0 if there is no such form.
        sources: places before the tokens that are possible, int32 [.., .., edges].
        tokens: these tokens, padded with `NO_TOKEN`.
        targets: the places after them.
        at_start: int32, such as `AT_START`.
        after_run: bool.
        after: int32.
        open_end: bool.
    """

    ids: Any
    ends: Any
    sources: Any
    tokens: Any
    targets: Any
    at_start: Any
    after_run: Any
    after: Any
    open_end: Any

    def at_once(self, chosen: Any) -> Forms:
        """Returns forms of which those of chosen phrases, bool, are complete whatever is around them."""
        chosen = chosen[:, None]
        return self._replace(
            at_start=tf.where(chosen, ANYWHERE, self.at_start),
            after_run=self.after_run & ~chosen,
            after=tf.where(chosen, AT_ONCE, self.after),
        )


def joined(one: Forms, other: Forms, axis: int) -> Forms:
    """Joins forms along their phrases (0) or along the forms of each phrase (1)."""
    values = []
    for name, x, y in zip(Forms._fields, one, other, strict=True):
        filler = {"tokens": NO_TOKEN}.get(name, 0)
        sizes = tf.maximum(tf.shape(x), tf.shape(y))

        def fit(z: Any, sizes: Any = sizes, filler: int = filler) -> Any:
            places = tf.range(tf.rank(z))
            short = tf.where(places == axis, 0, sizes - tf.shape(z))
            padding = tf.stack([tf.zeros_like(short), short], axis=1)
            return tf.pad(z, padding, constant_values=tf.cast(filler, z.dtype))

        values.append(tf.concat([fit(x), fit(y)], axis))
    return Forms(*values)


def linear(ids: Any, at_start: Any, after_run: Any, after: Any, open_end: Any) -> Forms:
    """Returns forms of one way only, by their ids, [phrases, forms, length]; the rest is [phrases, forms]."""
    places = tf.broadcast_to(tf.range(tf.shape(ids)[2]), tf.shape(ids))
    ends = tf.math.count_nonzero(ids, axis=2, dtype=tf.int32)
    tokens = tf.where(ids == PAD, NO_TOKEN, ids)
    return Forms(ids, ends, places, tokens, places + 1, at_start, after_run, after, open_end)


def first_true(mask: Any) -> tuple[Any, Any]:
    """Returns the places of true values in rows, int32 [rows, most], and which of them exist, bool."""
    counts = tf.math.count_nonzero(mask, axis=1, dtype=tf.int32)
    most = tf.maximum(tf.reduce_max(counts), 0)
    _, places = tf.math.top_k(tf.cast(mask, tf.int32), most)
    return places, tf.range(most) < counts[:, None]


class GraphSpelling:
    """Spells phrases with the tokens of a vocabulary.

    Args:
        vocabulary: of the outputs.
    """

    def __init__(self, vocabulary: TextEncoder) -> None:
        self._vocabulary = vocabulary
        self._longest = max(map(len, vocabulary.pieces))

    def forms(self, phrases: Any) -> Forms:
        """Spells phrases, string [phrases]; an empty one has no forms."""
        if isinstance(self._vocabulary, SubwordVocabulary):
            return self._subword_forms(phrases, self._vocabulary)
        return self._sentencepiece_forms(phrases)

    def can_spell(self, phrases: Any, forms: Forms) -> Any:
        """Returns which phrases, string [phrases], the vocabulary can spell, or are empty; bool [phrases]."""
        ids = forms.ids[:, 0]
        unknown = self._vocabulary.unknown or PAD
        known = ~tf.reduce_any((ids == EOS) | ((ids == unknown) & (ids != PAD)), axis=1)
        texts = self._vocabulary.graph.decode(tf.RaggedTensor.from_tensor(ids))
        return (phrases == "") | (known & (texts == phrases))

    def lattices(self, forms: Forms) -> Forms:
        """Returns forms with all ways to write them in tokens of the vocabulary; see `phrases.Lattice`."""
        vocabulary, shape = self._vocabulary, tf.shape(forms.ids)
        pieces = tf.where(forms.ids == PAD, "", vocabulary.graph.pieces(forms.ids))
        texts = tf.reshape(tf.strings.reduce_join(pieces, axis=2), [-1])  # [phrases * forms]
        lengths = tf.strings.length(texts, unit="UTF8_CHAR")
        longest = tf.reduce_max(lengths)
        widths = tf.range(1, tf.minimum(self._longest, longest) + 1)
        grid = tf.meshgrid(tf.range(longest), widths, indexing="ij")
        starts, widths = (tf.reshape(x, [1, -1]) for x in grid)
        fits = starts + widths <= lengths[:, None]  # [phrases * forms, substrings]
        place, width = (tf.where(fits, x, 0) for x in (starts, widths))
        every = tf.broadcast_to(texts[:, None], tf.shape(fits))
        flat = [tf.reshape(x, [-1]) for x in (every, place, width)]
        tokens = vocabulary.graph.tokens(tf.strings.substr(*flat, unit="UTF8_CHAR"))
        tokens = tf.reshape(tokens, tf.shape(fits))
        places, exist = first_true(fits & (tokens != PAD))
        found = [tf.gather(x, places, batch_dims=1) for x in (place, tokens, place + width)]
        found[1] = tf.where(exist, found[1], NO_TOKEN)
        sources, tokens, targets = (tf.reshape(x, [shape[0], shape[1], -1]) for x in found)
        ends = tf.reshape(lengths, shape[:2])
        return forms._replace(ends=ends, sources=sources, tokens=tokens, targets=targets)

    def _sentencepiece_forms(self, phrases: Any) -> Forms:
        texts = tf.where(phrases == "", FILLER, phrases)
        exists = phrases != ""
        unspaced = are_unspaced(first_codes(texts))
        both = tf.stack([texts, " " + texts], axis=1)
        exists = tf.stack([exists, exists & ~unspaced], axis=1)
        after = tf.where(are_joining(last_codes(texts)), BOUNDARY, ANYTHING)
        at_start = tf.stack([tf.where(unspaced, ANYWHERE, AT_START), tf.zeros_like(after)], axis=1)
        no = tf.zeros_like(exists)
        after = tf.broadcast_to(after[:, None], tf.shape(exists))
        ids = _ids(self._vocabulary.graph.encode, both, exists)
        return linear(ids, at_start, no, after, no)

    def _subword_forms(self, phrases: Any, vocabulary: SubwordVocabulary) -> Forms:
        texts = tf.where(phrases == "", FILLER, phrases)
        first, last = first_codes(texts), last_codes(texts)
        before, behind = ~are_alphanumeric(first), ~are_alphanumeric(last)
        forms = []
        for at_start in (True, False):
            for at_end in (True, False):
                exists = (phrases != "") & (at_start | before) & (at_end | behind)
                text = texts if at_start else " " + texts
                text = text if at_end else text + " "
                start = tf.where(before, AT_START if at_start else NOT_AT_START, ANYWHERE)
                after = tf.where(behind, NOTHING if at_end else ANYTHING, ANYTHING)
                forms.append((text, exists, start, after))
        every, exists, at_start_, after = (tf.stack(x, axis=1) for x in zip(*forms, strict=True))
        after_run, open_end = (
            tf.broadcast_to(x[:, None], tf.shape(exists)) for x in (~are_unspaced(first), are_unspaced(last))
        )
        encode = partial(vocabulary.graph.encode, is_open=tf.reshape(open_end, [-1]))
        return linear(_ids(encode, every, exists), at_start_, after_run, after, open_end)


def _ids(encode: Callable[[Any], Any], texts: Any, exist: Any) -> Any:
    """Returns the tokens of texts, of which some exist, [phrases, forms]; int32 [phrases, forms, longest]."""
    ids = encode(tf.reshape(texts, [-1])).to_tensor(PAD)
    shape = [*tf.unstack(tf.shape(texts)), tf.shape(ids)[1]]
    return tf.where(exist[:, :, None], tf.reshape(ids, shape), PAD)
