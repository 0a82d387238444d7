"""Encoding and decoding by `SubwordVocabulary` and `Vocabulary` as TensorFlow and TensorFlow Text ops."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Collection, Mapping, Sequence

import keras_nlp
import tensorflow as tf
import tensorflow_text as tf_text

from t2t_revival.data.vocabulary.subword_format import (
    END,
    ESCAPE_CHARACTERS,
    REPLACEMENT,
    alphanumeric_bounds,
)
from t2t_revival.data.vocabulary.text_encoder import EOS, PAD
from t2t_revival.utils.keras_hooks import name_vocabulary
from t2t_revival.utils.native_log import quiet

SPACE = ord(" ")
ESCAPE = r"(\\u|\\\\|\\[0-9]+;)"
MAX_DIGITS = len(str(sys.maxunicode))
MAX_RUN_BYTES = 2**30  # effectively unbounded


class SubwordGraph:
    """Encodes and decodes lines in a graph; its resource is the lookup table, subtoken -> id.

    It has one subtoken for each id; an empty one has no text.
    """

    def __init__(self, subtokens: Sequence[str]) -> None:
        ids = {subtoken: token for token, subtoken in enumerate(subtokens) if subtoken}
        with tf.init_scope():
            pairs = tf.lookup.KeyValueTensorInitializer(list(ids), list(ids.values()), tf.string, tf.int64)
            self.resource = tf.lookup.StaticHashTable(pairs, default_value=-1)
            self._longest_match = tf_text.WordpieceTokenizer(
                self.resource,
                suffix_indicator="",
                max_bytes_per_word=MAX_RUN_BYTES,
                max_chars_per_token=max(map(len, subtokens)),
                token_out_type=tf.int64,
            )
        self._subtokens = [subtoken.encode() for subtoken in subtokens]
        alphabet = {c for subtoken in subtokens for c in subtoken}.union(ESCAPE_CHARACTERS) - {"\n"}
        self._alphabet = sorted(map(ord, alphabet))

    def encode(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Encodes lines: UTF-8 string [batch] -> int32 [batch, None]."""
        codes = tf.strings.unicode_decode(texts, "UTF-8")  # [batch, None]
        line, code = codes.value_rowids(), codes.values  # both [characters]
        begins_run = _changes(line) | _changes(are_alphanumeric(code))  # bool [characters]
        run = tf.cumsum(tf.cast(begins_run, tf.int64)) - 1
        num_runs = tf.math.count_nonzero(begins_run)
        line = tf.boolean_mask(line, begins_run)  # [runs]
        escaped = tf.RaggedTensor.from_value_rowids(self._escaped(code), run, num_runs)
        single_space = (escaped.row_lengths() == 1) & (tf.boolean_mask(code, begins_run) == SPACE)
        ends_line = tf.reverse(_changes(tf.reverse(line, [0])), [0])
        kept = ~single_space | _changes(line) | ends_line
        words = tf.strings.reduce_join(escaped, axis=1)
        words = tf.boolean_mask(words, kept) + END
        ids = tf.cast(self._longest_match.tokenize(words), tf.int32)  # [kept runs, None]
        lines = tf.RaggedTensor.from_value_rowids(ids, tf.boolean_mask(line, kept), tf.size(texts, tf.int64))
        return lines.merge_dims(1, 2)

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Decodes ids: int32 [batch, None] -> string [batch]."""
        subtokens = tf.gather(tf.constant(self._subtokens), until_eos(ids))
        runs = tf.strings.split(tf.strings.reduce_join(subtokens, axis=1), END)
        runs = tf.ragged.boolean_mask(runs, runs != "")
        line, words = runs.value_rowids(), _unescaped(runs.values)
        heads = tf.strings.unicode_decode(tf.strings.substr(words, 0, 1, unit="UTF8_CHAR"), "UTF-8")
        after = are_alphanumeric(heads.values)  # [words]: no word is empty
        before = tf.concat([tf.zeros_like(after[:1]), after[:-1]], axis=0)
        words = tf.where(before & after & ~_changes(line), " " + words, words)
        return tf.strings.reduce_join(runs.with_values(words), axis=1)

    def _escaped(self, code: tf.Tensor) -> tf.Tensor:
        """Escapes code points: int32 [characters] -> string [characters]."""
        text = tf.strings.unicode_encode(code[:, None], "UTF-8")
        text = tf.where(code == ord("\\"), r"\\", tf.where(code == ord("_"), r"\u", text))
        alphabet = tf.constant(self._alphabet)
        index = tf.minimum(tf.searchsorted(alphabet, code), tf.size(alphabet) - 1)
        known = tf.gather(alphabet, index) == code
        return tf.where(known, text, "\\" + tf.strings.as_string(code) + ";")


def until_eos(ids: tf.RaggedTensor) -> tf.RaggedTensor:
    """Truncates each row before its first EOS and removes PAD: int32 [batch, None] -> int32 [batch, None]."""
    dense = ids.to_tensor(PAD)  # [batch, longest]
    ended = tf.cumsum(tf.cast(dense == EOS, tf.int32), axis=1) > 0
    return tf.ragged.boolean_mask(dense, (dense != PAD) & ~ended)


def _changes(x: tf.Tensor) -> tf.Tensor:
    """Marks the elements that differ from the one before: [size] -> bool [size]; the first is marked."""
    return tf.concat([tf.ones_like(x[:1], tf.bool), x[1:] != x[:-1]], axis=0)


def are_alphanumeric(code: tf.Tensor) -> tf.Tensor:
    """Marks letters and numbers: code points int32 [size] -> bool [size]."""
    bounds = tf.constant(alphanumeric_bounds())
    return tf.searchsorted(bounds, code, side="right") % 2 == 1


def _unescaped(words: tf.Tensor) -> tf.Tensor:
    """Unescapes runs without their end marks: string [words] -> string [words]."""
    parts = tf.strings.split(tf.strings.regex_replace(words, ESCAPE, rf"{END}\1{END}"), END)
    index = tf.ragged.range(parts.row_lengths()).values  # of each part in its word; escapes have odd ones
    text = tf.where(index % 2 == 1, _character(parts.values), parts.values)
    return tf.strings.reduce_join(parts.with_values(text), axis=1)


def _character(escapes: tf.Tensor) -> tf.Tensor:
    """Returns the character of each escape: string [size] -> string [size]; undefined for other strings."""
    digits = tf.strings.regex_replace(escapes, r"^\\0*([0-9]*);$", r"\1")
    is_code = tf.strings.regex_full_match(digits, f"[0-9]{{0,{MAX_DIGITS}}}")
    code = tf.strings.to_number(tf.where(is_code, "0" + digits, "0"), tf.int32)
    valid = is_code & (code <= sys.maxunicode) & ~((code >= 0xD800) & (code < 0xE000))
    text = tf.strings.unicode_encode(tf.where(valid, code, ord(REPLACEMENT))[:, None], "UTF-8")
    return tf.where(escapes == r"\\", "\\", tf.where(escapes == r"\u", "_", text))


class SentencePieceGraph:
    """Encodes and decodes lines in a graph; its resource is `keras_nlp`'s tokeniser.

    The escapes are pairs of a character and its escape, in the order in which `encode` replaces them.
    """

    def __init__(self, model: bytes, escapes: Sequence[tuple[str, str]]) -> None:
        with tf.init_scope(), quiet():
            self.resource = keras_nlp.tokenizers.SentencePieceTokenizer(proto=model, dtype="int32")
            name_vocabulary(self.resource, f"vocabulary_{zlib.crc32(model):08x}")
        self._escapes = escapes
        # Graphs even in eager mode, in which the Keras layer would return lists.
        self._tokenize = tf.function(self.resource.tokenize, autograph=False)
        self._detokenize = tf.function(self.resource.detokenize, autograph=False)

    def encode(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Encodes lines: UTF-8 string [batch] -> int32 [batch, None]."""
        for character, escaped in self._escapes:
            texts = tf.strings.regex_replace(texts, character, escaped)
        return self._tokenize(texts)

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Decodes ids: int32 [batch, None] -> string [batch]."""
        texts = self._detokenize(until_eos(ids))
        for character, escaped in reversed(self._escapes):
            texts = tf.strings.regex_replace(texts, escaped, character)
        return texts


class MarianGraph:
    """Encodes and decodes lines of `MarianVocabulary` in a graph; its resource is tokeniser and table.

    `tag` is a pattern, "" for none; `space` stands for one in pieces; `around` are pieces before and after
    each line, and `silent` ids without text.
    """

    def __init__(
        self,
        model: bytes,
        ids: Mapping[str, int],
        unknown: int,
        tag: str,
        space: str,
        around: tuple[str, str],
        silent: Collection[int],
    ) -> None:
        with tf.init_scope(), quiet():
            tokenizer = tf_text.SentencepieceTokenizer(model, out_type=tf.string)
            name_vocabulary(tokenizer, f"vocabulary_{zlib.crc32(model):08x}")
            pairs = tf.lookup.KeyValueTensorInitializer(list(ids), list(ids.values()), tf.string, tf.int64)
            self._table = tf.lookup.StaticHashTable(pairs, default_value=unknown)
        self.resource = [tokenizer, self._table]
        self._pieces = [piece.encode() for piece in ids]
        self._has_text = [token not in silent for token in range(len(ids))]
        self._tag, self._space, self._around = tag, space, around
        self._tokenize = tf.function(tokenizer.tokenize, autograph=False)
        self._detokenize = tf.function(tokenizer.detokenize, autograph=False)

    def encode(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Encodes lines: UTF-8 string [batch] -> int32 [batch, None]."""
        before, after = (tf.fill([tf.size(texts), int(bool(piece))], piece) for piece in self._around)
        plain = texts
        if self._tag:
            plain = tf.strings.regex_replace(texts, self._tag, "", replace_global=False)
            tagged = plain != texts  # bool [batch]
            tags = tf.strings.regex_replace(tf.boolean_mask(texts, tagged), f"{self._tag}.*", r"\1")
            before = tf.RaggedTensor.from_row_lengths(tags, tf.cast(tagged, tf.int64))
        pieces = tf.concat([before, self._tokenize(plain), after], axis=1)
        return pieces.with_values(tf.cast(self._table.lookup(pieces.values), tf.int32))

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Decodes ids: int32 [batch, None] -> string [batch]."""
        kept = until_eos(ids)
        kept = tf.ragged.boolean_mask(kept, tf.gather(tf.constant(self._has_text), kept))
        texts = self._detokenize(tf.gather(tf.constant(self._pieces), kept))
        return tf.strings.strip(tf.strings.regex_replace(texts, self._space, " "))
