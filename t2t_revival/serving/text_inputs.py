"""Lines as a model reads and writes them, as TensorFlow ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import tensorflow as tf
import tensorflow_text as tf_text

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.utils.texts import INVISIBLE

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder

SPACE = r"[\s\v\x1c-\x1f\x{85}\pZ]"  # whitespace of Python's `strip` and `split`
BLANK = "^[{}]*$".format("".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in INVISIBLE))
BRACKETS = ((r"\(", "-LRB-"), (r"\)", "-RRB-"))  # as treebanks write them
LINE_END = r"[\n\r]"
SUBSTITUTE = 0xFFFD  # replaces invalid UTF-8


@dataclass(frozen=True)
class TextInputs:
    """Conversion of lines to ids.

    Attributes:
        vocabulary: of the sources.
        max_length: maximum number of tokens of a source, EOS included.
        separates_words: whether lines are split into words, for parsing.
        form: Unicode's, into which lines are brought; "" leaves them as they are.
    """

    vocabulary: TextEncoder
    max_length: int
    separates_words: bool = False
    form: str = ""

    def texts(self, lines: tf.Tensor, prefixes: tf.Tensor | None = None) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns lines, string [batch], as the model reads them, and which are blank, bool [batch].

        There is at least one, which the ops that follow need. Prefixes, string [] or [batch], stand before
        those that do not begin with them.
        """
        lines = tf.pad(lines, [[0, tf.cast(tf.shape(lines)[0] == 0, tf.int32)]])
        texts = tf.strings.unicode_transcode(lines, "UTF-8", "UTF-8", replacement_char=SUBSTITUTE)
        if self.form:
            texts = tf_text.normalize_utf8(texts, self.form.upper())
        texts = tf.strings.regex_replace(texts, LINE_END, " ")
        if self.separates_words:
            texts = _words(texts)
        blank = tf.strings.regex_full_match(texts, BLANK)
        if prefixes is None:
            return texts, blank
        prefixes = tf.broadcast_to(prefixes, tf.shape(texts))
        lengths = tf.strings.length(prefixes)
        has_prefix = tf.strings.substr(texts, tf.zeros_like(lengths), lengths) == prefixes
        return tf.where(has_prefix, texts, tf.strings.join([prefixes, texts])), blank

    def encode(self, texts: tf.Tensor, blank: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Encodes texts, string [batch], as int32 [batch, source]; a blank text is padding only.

        Also returns which texts are longer than the model's inputs and have been cut, bool [batch].
        """
        ids = self.vocabulary.graph.encode(texts)
        truncated = ~blank & (ids.row_lengths() >= self.max_length)
        return tf.where(blank[:, None], PAD, with_eos(ids, self.max_length)), truncated


def with_eos(ids: tf.RaggedTensor, max_length: int) -> tf.Tensor:
    """Returns ids [batch, None] with EOS, at most `max_length` of them, as int32 [batch, longest]."""
    ends = tf.fill([ids.nrows(), 1], EOS)
    return tf.concat([ids[:, : max_length - 1], ends], axis=1).to_tensor(PAD)


def _words(texts: tf.Tensor) -> tf.Tensor:
    """Formats sentences, string [batch], as the parsing problems do: one space between words."""
    texts = tf.strings.strip(tf.strings.regex_replace(texts, rf"{SPACE}+", " "))
    for bracket, name in BRACKETS:
        texts = tf.strings.regex_replace(texts, bracket, name)
    return texts
