"""The shared subword vocabulary (section 5.1): SentencePiece BPE, the same ids in Python and in the graph.

Any line comes back as it was: nothing is normalised, whitespace is kept, and what the vocabulary has no
piece for becomes bytes. A line is any string of Unicode scalar values without "\\n"; lone surrogates
(U+D800 to U+DFFF) are no characters and have no UTF-8, so that no line can hold them.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sentencepiece

from t2t_revival.errors import T2TError
from t2t_revival.files import writing
from t2t_revival.native_log import quiet

if TYPE_CHECKING:
    import tensorflow as tf

PAD, EOS, UNK = 0, 1, 2
ERRORS_ONLY = 2  # SentencePiece's log level
CHARACTER_COVERAGE = 0.9999  # share of the text's characters with a piece of their own; the rest are bytes

# SentencePiece writes a space as U+2581, and so would lose a U+2581 of the text. ESCAPE followed by
# "1" stands for it, and ESCAPE followed by "0" for ESCAPE itself.
SPACE_MARK, ESCAPE = "\u2581", "\ue000"
_ESCAPES = ((ESCAPE, ESCAPE + "0"), (SPACE_MARK, ESCAPE + "1"))


def fingerprint(path: Path) -> str:
    """SHA-256 of a vocabulary's file, in hexadecimal; nothing of the file is looked at.

    Raises:
        T2TError: there is no such file.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError as error:
        raise T2TError(f"{path}: no such vocabulary") from error


class VocabularyTooLargeError(T2TError):
    """The text does not yield so many pieces; `largest` is how many it does."""

    def __init__(self, wanted: int, largest: int) -> None:
        super().__init__(
            f"--vocab_size={wanted}: the text yields no more than {largest} pieces; "
            f"give --vocab_size={largest} or less"
        )
        self.largest = largest


class Vocabulary:
    """A SentencePiece model.

    Args:
        path: the model's file, as `train` writes it.

    Raises:
        T2TError: the file is missing, damaged, or has other ids for PAD and EOS.
    """

    unknown = UNK

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.content = self.path.read_bytes()
        except FileNotFoundError as error:
            raise T2TError(f"{path}: no such vocabulary") from error
        sentencepiece.set_min_log_level(ERRORS_ONLY)
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_proto=self.content or b"\0")
        except RuntimeError as error:
            raise T2TError(f"{path}: damaged, or not a SentencePiece model") from error
        if (self._pieces.pad_id(), self._pieces.eos_id()) != (PAD, EOS):
            raise T2TError(
                f"{path}: a vocabulary must have PAD {PAD} and EOS {EOS}; make it with t2t-datagen"
            )

    def __reduce__(self) -> tuple[type[Vocabulary], tuple[Path]]:
        return Vocabulary, (self.path,)

    @property
    def size(self) -> int:
        """How many ids there are, PAD, EOS and UNK included."""
        return self._pieces.get_piece_size()

    @cached_property
    def pieces(self) -> list[str]:
        """The piece of each id, as SentencePiece writes it."""
        return [self._pieces.id_to_piece(piece) for piece in range(self.size)]

    def check_symbols(self, symbols: Iterable[str]) -> None:
        """Checks that texts are one piece each.

        Raises:
            T2TError: one is not.
        """
        known = set(self.pieces)
        if missing := [symbol for symbol in symbols if _as_piece(symbol) not in known]:
            raise T2TError(
                f"{self.path}: a vocabulary without the piece {missing[0]!r}; remove it, and one is made"
            )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the model, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def encode(self, text: str) -> list[int]:
        """The ids of one line, without EOS."""
        return self._pieces.encode(_escape(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many lines, without EOS; one thread."""
        return self._pieces.encode([_escape(text) for text in texts], num_threads=1)

    def decode(self, ids: Iterable[int]) -> str:
        """The line that `ids` stand for, up to the first EOS, without PAD."""
        return _unescape(self._pieces.decode(until_eos(ids)))

    @cached_property
    def graph_resource(self) -> Any:
        """`keras_nlp`'s tokeniser on the same model; an exported module must hold it as an attribute."""
        import keras_nlp
        import tensorflow as tf

        with tf.init_scope(), quiet():
            return keras_nlp.tokenizers.SentencePieceTokenizer(proto=self.content, dtype="int32")

    @cached_property
    def _tokenize(self) -> Any:
        """As a graph even when called eagerly, where the Keras layer would return lists."""
        import tensorflow as tf

        return tf.function(self.graph_resource.tokenize, autograph=False)

    @cached_property
    def _detokenize(self) -> Any:
        import tensorflow as tf

        return tf.function(self.graph_resource.detokenize, autograph=False)

    def encode_in_graph(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """`encode_batch` as TensorFlow ops: string [batch] -> int32 [batch, None], without EOS."""
        import tensorflow as tf

        for character, escaped in _ESCAPES:
            texts = tf.strings.regex_replace(texts, character, escaped)
        return self._tokenize(texts)

    def decode_in_graph(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """`decode` of each as TensorFlow ops: int32 [batch, None] -> string [batch]."""
        import tensorflow as tf

        texts = self._detokenize(until_eos_in_graph(ids))
        for character, escaped in reversed(_ESCAPES):
            texts = tf.strings.regex_replace(texts, escaped, character)
        return texts

    @classmethod
    def train(
        cls, lines: Iterable[str], path: str | Path, vocab_size: int, user_symbols: Sequence[str] = ()
    ) -> Vocabulary:
        """Learns a vocabulary and writes it to `path`, whole or not at all. Deterministic.

        Args:
            lines: the text; held in memory.
            path: the file to write.
            vocab_size: pieces, with PAD, EOS, UNK and the 256 bytes among them.
            user_symbols: texts that always are one piece.

        Raises:
            VocabularyTooLargeError: the text does not yield so many pieces.
            T2TError: there is no text, or `vocab_size` is smaller than its characters need.
        """
        model = io.BytesIO()
        sentencepiece.set_min_log_level(ERRORS_ONLY)
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_training_lines(lines),
                model_writer=model,
                model_type="bpe",
                vocab_size=vocab_size,
                user_defined_symbols=list(map(_as_piece, user_symbols)),
                pad_id=PAD,
                eos_id=EOS,
                unk_id=UNK,
                bos_id=-1,
                byte_fallback=True,
                character_coverage=CHARACTER_COVERAGE,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                add_dummy_prefix=False,
                max_sentence_length=1 << 24,
                minloglevel=ERRORS_ONLY,
            )
        except RuntimeError as error:
            raise _training_error(str(error), vocab_size) from error
        with writing(Path(path)) as file:
            file.write(model.getvalue())
        return cls(path)


def _escape(text: str) -> str:
    for character, escaped in _ESCAPES:
        text = text.replace(character, escaped)
    return text


def _as_piece(symbol: str) -> str:
    return _escape(symbol).replace(" ", SPACE_MARK)


def _unescape(text: str) -> str:
    for character, escaped in reversed(_ESCAPES):
        text = text.replace(escaped, character)
    return text


def until_eos(ids: Iterable[int]) -> list[int]:
    """`ids` up to the first EOS, without PAD."""
    return [int(token) for token in takewhile(lambda token: token != EOS, ids) if token != PAD]


def until_eos_in_graph(ids: tf.RaggedTensor) -> tf.RaggedTensor:
    """`until_eos` of each as TensorFlow ops: int32 [batch, None] -> the same, shorter."""
    import tensorflow as tf

    dense = ids.to_tensor(PAD)  # [batch, longest]
    ended = tf.cumsum(tf.cast(dense == EOS, tf.int32), axis=1) > 0
    return tf.ragged.boolean_mask(dense, (dense != PAD) & ~ended)


def _training_lines(lines: Iterable[str]) -> Iterator[str]:
    return (_escape(line) for line in lines if line)


def _training_error(message: str, vocab_size: int) -> T2TError:
    """SentencePiece's error in our words."""
    if largest := re.search(r"too high .*<= (\d+)", message):
        return VocabularyTooLargeError(vocab_size, int(largest[1]))
    if smallest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return T2TError(
            f"--vocab_size={vocab_size}: too small, the bytes and characters of the text need {smallest[1]}"
        )
    if "sentences_.empty()" in message:
        return T2TError("no text to make a vocabulary from: every line is empty")
    return T2TError(f"--vocab_size={vocab_size}: no vocabulary could be made: {message}")
