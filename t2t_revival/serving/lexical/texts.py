"""Phrases of requests, and where texts have them, as TensorFlow ops; see `decoding.lexical_constraints`."""

from __future__ import annotations

import sys
from functools import lru_cache
from itertools import groupby

import tensorflow as tf

from t2t_revival.decoding.phrases import UNSPACED, joins
from t2t_revival.serving.signatures import PHRASE_END
from t2t_revival.serving.text_inputs import LINE_END, SPACE, SUBSTITUTE


def split_phrases(lines: tf.Tensor) -> tf.Tensor:
    """Splits lines of phrases, string [batch], into string [batch, phrases]; "" is where there is none.

    There is at least one column.
    """
    lines = tf.strings.unicode_transcode(lines, "UTF-8", "UTF-8", replacement_char=SUBSTITUTE)
    phrases = tf.strings.split(lines, PHRASE_END)
    texts = tf.strings.regex_replace(phrases.values, LINE_END, " ")
    texts = tf.strings.regex_replace(texts, rf"^{SPACE}+|{SPACE}+$", "")
    phrases = phrases.with_values(texts)
    table = tf.ragged.boolean_mask(phrases, phrases.with_values(texts != "")).to_tensor("")
    return tf.pad(table, [[0, 0], [0, tf.cast(tf.shape(table)[1] == 0, tf.int32)]])


def first_places(phrases: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns which phrases, [batch, phrases], are no repetitions, and whether pairs of them are equal.

    These are bool [batch, phrases] and, without empty ones, bool [batch, phrases, phrases].
    """
    equal = (phrases[:, :, None] == phrases[:, None]) & (phrases != "")[:, None]
    number = tf.range(tf.shape(phrases)[1])
    repeats = tf.reduce_any(equal & (number[None, :] < number[:, None]), axis=2)
    return (phrases != "") & ~repeats, equal


def has_phrase(texts: tf.Tensor, phrases: tf.Tensor) -> tf.Tensor:
    """Returns whether texts, string [rows], have phrases, string [rows, phrases], as whole words.

    No text has an empty phrase.
    """
    codes = _codes(texts)  # [rows, text]
    rows, length = tf.shape(codes)[0], tf.shape(codes)[1]
    wanted = _codes(tf.reshape(phrases, [-1]))
    longest = tf.shape(wanted)[1]
    wanted = tf.reshape(wanted, [rows, tf.shape(phrases)[1], 1, longest])  # [rows, phrases, 1, phrase]
    places = tf.range(length)[:, None] + tf.range(longest)
    windows = tf.gather(tf.pad(codes, [[0, 0], [0, longest]], constant_values=-1), places, axis=1)
    same = tf.reduce_all((windows[:, None] == wanted) | (wanted < 0), axis=3)  # [rows, phrases, text]

    in_word = tf.pad(are_joining(codes), [[0, 0], [1, 1]])
    inside = tf.pad(in_word[:, :-1] & in_word[:, 1:], [[0, 0], [0, longest]])  # by place, and beyond the text
    lengths = tf.math.count_nonzero(wanted >= 0, axis=3, dtype=tf.int32)  # [rows, phrases, 1]
    ends = tf.broadcast_to(tf.range(length) + lengths, tf.shape(same))
    ends_inside = tf.gather(inside, ends, batch_dims=1)
    whole = ~(inside[:, None, :length] | ends_inside)
    return tf.reduce_any(same & whole & (lengths > 0), axis=2)


def first_codes(texts: tf.Tensor) -> tf.Tensor:
    """Returns the first code points of texts that are not empty: string [rows] -> int32 [rows]."""
    return _codes(tf.strings.substr(texts, 0, 1, unit="UTF8_CHAR"))[:, 0]


def last_codes(texts: tf.Tensor) -> tf.Tensor:
    """Returns the last code points of texts that are not empty: string [rows] -> int32 [rows]."""
    return _codes(tf.strings.substr(texts, -1, 1, unit="UTF8_CHAR"))[:, 0]


def are_unspaced(codes: tf.Tensor) -> tf.Tensor:
    """Returns which code points are of scripts without spaces between words."""
    return _between(codes, _unspaced_bounds())


def are_joining(codes: tf.Tensor) -> tf.Tensor:
    """Returns which code points form a word with one beside them; see `phrases.joins`."""
    return _between(codes, _bounds_of_words())


def _codes(texts: tf.Tensor) -> tf.Tensor:
    """Returns code points, int32 [rows, longest], padded with -1."""
    return tf.strings.unicode_decode(texts, "UTF-8").to_tensor(-1)


def _between(codes: tf.Tensor, bounds: list[int]) -> tf.Tensor:
    flat = tf.reshape(codes, [-1])
    found = tf.searchsorted(tf.constant(bounds), flat, side="right") % 2 == 1
    return tf.reshape(found, tf.shape(codes))


@lru_cache(1)
def _bounds_of_words() -> list[int]:
    """Returns the code points at which `joins` changes, ascending; the first change is to true."""
    kinds = groupby(range(sys.maxunicode + 1), lambda code: joins(chr(code)))
    return [next(codes) for _, codes in kinds][1:]


@lru_cache(1)
def _unspaced_bounds() -> list[int]:
    kinds = groupby(range(sys.maxunicode + 1), lambda code: bool(UNSPACED.match(chr(code))))
    return [next(codes) for _, codes in kinds][1:]
