"""T2T's subword vocabulary as TensorFlow and TensorFlow Text ops; the steps are those of `subwords`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import tensorflow as tf
import tensorflow_text as tf_text

from t2t_revival.data.subwords import END, NO_CHARACTER, alphanumeric_bounds
from t2t_revival.data.vocabulary import until_eos_in_graph

if TYPE_CHECKING:
    from t2t_revival.data.subwords import SubwordVocabulary

SPACE, LINE_FEED = ord(" "), ord("\n")
ESCAPE = r"(\\u|\\\\|\\[0-9]+;)"
MOST_DIGITS = len(str(sys.maxunicode))
MOST_BYTES = 2**30  # of a run: no bound


class SubwordGraph:
    """Encodes and decodes lines in a graph.

    Args:
        vocabulary: its subtokens become constants of the graph.

    Attributes:
        table: subtoken -> id.
    """

    def __init__(self, vocabulary: SubwordVocabulary) -> None:
        subtokens = vocabulary.subtokens
        ids = {subtoken: token for token, subtoken in enumerate(subtokens) if subtoken}
        with tf.init_scope():
            pairs = tf.lookup.KeyValueTensorInitializer(list(ids), list(ids.values()), tf.string, tf.int64)
            self.table = tf.lookup.StaticHashTable(pairs, default_value=-1)
            self._longest_match = tf_text.WordpieceTokenizer(
                self.table,
                suffix_indicator="",
                max_bytes_per_word=MOST_BYTES,
                max_chars_per_token=vocabulary.longest,
                token_out_type=tf.int64,
            )
        self._subtokens = [subtoken.encode() for subtoken in subtokens]
        self._alphabet = sorted(ord(c) for c in vocabulary.alphabet if c != "\n")

    def encode(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """string [batch], UTF-8 -> int32 [batch, None]."""
        codes = tf.strings.unicode_decode(texts, "UTF-8")  # [batch, None]
        line, code = codes.value_rowids(), codes.values  # both [characters]
        first = _differs(line) | _differs(_is_alphanumeric(code))  # whether a run begins
        run = tf.cumsum(tf.cast(first, tf.int64)) - 1
        count = tf.math.count_nonzero(first)
        line = tf.boolean_mask(line, first)  # [runs]
        escaped = tf.RaggedTensor.from_value_rowids(self._escaped(code), run, count)
        size = escaped.row_lengths()
        spaces = (size == 1) & (tf.boolean_mask(code, first) == SPACE)
        ends = tf.reverse(_differs(tf.reverse(line, [0])), [0])
        kept = ~spaces | _differs(line) | ends
        words = tf.boolean_mask(tf.strings.reduce_join(escaped, axis=1), kept) + END
        ids = tf.cast(self._longest_match.tokenize(words), tf.int32)  # [runs that are kept, None]
        lines = tf.RaggedTensor.from_value_rowids(ids, tf.boolean_mask(line, kept), tf.size(texts, tf.int64))
        return lines.merge_dims(1, 2)

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """int32 [batch, None] -> string [batch]."""
        subtokens = tf.gather(tf.constant(self._subtokens), until_eos_in_graph(ids))
        runs = tf.strings.split(tf.strings.reduce_join(subtokens, axis=1), END)
        runs = tf.ragged.boolean_mask(runs, runs != "")
        line, words = runs.value_rowids(), _unescaped(runs.values)
        heads = tf.strings.unicode_decode(tf.strings.substr(words, 0, 1, unit="UTF8_CHAR"), "UTF-8")
        after = _is_alphanumeric(heads.values)  # [words]: no word is empty
        before = tf.concat([tf.zeros_like(after[:1]), after[:-1]], axis=0)
        words = tf.where(before & after & ~_differs(line), " " + words, words)
        return tf.strings.reduce_join(runs.with_values(words), axis=1)

    def _escaped(self, code: tf.Tensor) -> tf.Tensor:
        """Code points, int32 [characters] -> string [characters]."""
        text = tf.strings.unicode_encode(code[:, None], "UTF-8")
        text = tf.where(code == ord("\\"), r"\\", tf.where(code == ord("_"), r"\u", text))
        alphabet = tf.constant(self._alphabet)
        place = tf.minimum(tf.searchsorted(alphabet, code), tf.size(alphabet) - 1)
        known = tf.gather(alphabet, place) == code
        return tf.where(known, text, "\\" + tf.strings.as_string(code) + ";")


def _differs(x: tf.Tensor) -> tf.Tensor:
    """Whether each differs from the one before it, bool [size]; the first does."""
    return tf.concat([tf.ones_like(x[:1], tf.bool), x[1:] != x[:-1]], axis=0)


def _is_alphanumeric(code: tf.Tensor) -> tf.Tensor:
    """Code points, int32 [size] -> bool [size]."""
    bounds = tf.constant(alphanumeric_bounds())
    return tf.searchsorted(bounds, code, side="right") % 2 == 1


def _unescaped(words: tf.Tensor) -> tf.Tensor:
    """Escaped runs, string [words], none of which has a "_" -> string [words]."""
    parts = tf.strings.split(tf.strings.regex_replace(words, ESCAPE, rf"{END}\1{END}"), END)
    number = tf.ragged.range(parts.row_lengths()).values  # of a part in its word: escapes have odd ones
    text = tf.where(number % 2 == 1, _character(parts.values), parts.values)
    return tf.strings.reduce_join(parts.with_values(text), axis=1)


def _character(escapes: tf.Tensor) -> tf.Tensor:
    """The character of each escape, string [size] -> string [size]; whatever, where it is none."""
    digits = tf.strings.regex_replace(escapes, r"^\\0*([0-9]*);$", r"\1")
    is_code = tf.strings.regex_full_match(digits, f"[0-9]{{0,{MOST_DIGITS}}}")
    code = tf.strings.to_number(tf.where(is_code, "0" + digits, "0"), tf.int32)
    valid = is_code & (code <= sys.maxunicode) & ~((code >= 0xD800) & (code < 0xE000))
    text = tf.strings.unicode_encode(tf.where(valid, code, ord(NO_CHARACTER))[:, None], "UTF-8")
    return tf.where(escapes == r"\\", "\\", tf.where(escapes == r"\u", "_", text))
