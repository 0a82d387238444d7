"""Section 6.3, an addition of ours: the decoder of a parser is shown the word that comes next."""

from __future__ import annotations

from typing import Any, NamedTuple

from keras import layers, ops

from t2t_revival.hparams import HParams

BEGINS, ENDS, STANDS_FOR = range(3)  # a word: the columns of a vocabulary's marks


class Words(NamedTuple):
    """A sentence's words, as its decoder sees them.

    Attributes:
        numbers: of the word that a source token is the first of, counted from 0; -1: not the first of one.
            int32 [batch, source]. The EOS counts as a word.
        vectors: what is added to the decoder's input, [batch, source, hidden].
    """

    numbers: Any
    vectors: Any


class DeterministicAttention(layers.Layer):
    """Attends to one source token: the first of the word that the target has not come to yet.

    Which word that is needs not be learned: as many target tokens that stand for words went before. The
    decoder's soft attention, and its layers, are as they were.

    Args:
        hparams: reads `hidden_size`.
        vocab_size: number of tokens.

    Attributes:
        marks: of each token, whether it begins a word of the source, ends one, or stands for one in the
            target, 0 or 1, [vocab, 3]. Not trained: who makes a model to be trained assigns it.

    Reference: Ma et al., 2017, "Deterministic Attention for Sequence-to-Sequence Constituent Parsing".
    """

    def __init__(self, hparams: HParams, vocab_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hparams.hidden_size
        self.vocab_size = vocab_size

    def build(self, input_shape: Any = None) -> None:
        self.marks = self.add_weight(
            name="marks", shape=(self.vocab_size, 3), initializer="zeros", trainable=False
        )
        self.kernel = self.add_weight(
            name="kernel", shape=(self.hidden_size, self.hidden_size), initializer="glorot_uniform"
        )
        self.built = True

    def words(self, source: Any, encoded: Any) -> Words:
        """Source ids [batch, source] and what they are encoded as, [batch, source, hidden]."""
        marks = ops.cast(ops.take(self.marks, source, axis=0), "int32")  # [batch, source, 3]
        begins = ops.maximum(marks[:, 1:, BEGINS], marks[:, :-1, ENDS])  # but for the first word
        numbers = ops.where(begins > 0, ops.cumsum(begins, axis=1), -1)
        kernel = ops.cast(self.kernel, encoded.dtype)
        return Words(ops.pad(numbers, [[0, 0], [1, 0]]), ops.matmul(encoded, kernel))

    def stand_for(self, targets: Any) -> Any:
        """Target ids, of any shape -> whether each stands for a word, 0 or 1, int32."""
        return ops.cast(ops.take(self.marks[:, STANDS_FOR], targets, axis=0), "int32")

    def call(self, said: Any, words: Words) -> Any:
        """How many words were said, int32 [batch, target] -> vectors of the next, [batch, target, hidden]."""
        attended = ops.equal(said[:, :, None], words.numbers[:, None, :])  # [batch, target, source]
        return ops.matmul(ops.cast(attended, words.vectors.dtype), words.vectors)
