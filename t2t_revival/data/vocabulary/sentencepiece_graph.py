"""`SentencePieceGraph`: `Vocabulary`'s encoding and decoding as TensorFlow Text ops."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import keras_nlp
import tensorflow as tf

from t2t_revival.data.vocabulary.subwords_graph import until_eos
from t2t_revival.utils.keras_hooks import name_vocabulary
from t2t_revival.utils.native_log import quiet


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
