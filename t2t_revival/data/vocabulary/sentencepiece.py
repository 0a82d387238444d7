r"""`Vocabulary`: SentencePiece BPE (section 5.1), with the same ids in Python and in the graph.

Encoding is lossless: text is not normalised, whitespace is kept, and characters without a piece become bytes.
A line is any string of Unicode scalar values without "\n"; lone surrogates (U+D800 to U+DFFF) are not
characters and have no UTF-8.
"""

from __future__ import annotations

import io
import math
import re
import struct
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import sentencepiece

from t2t_revival.data.records import field, varint
from t2t_revival.data.vocabulary.text_encoder import EOS, PAD, Splits, TextEncoder, merge_splits, until_eos
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import write_whole

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.graphs import SentencePieceGraph

UNK = 2
FIRST_BYTE = "<0x00>"
NORMAL, SYMBOL = 1, 4  # kinds of pieces
LEAST_SIZE = 260  # PAD, EOS, UNK, 256 bytes, and a character
ERRORS_ONLY = 2  # SentencePiece's log level
CHARACTER_COVERAGE = 0.9999  # share of the text's characters that get their own piece

# SentencePiece replaces spaces by U+2581, so that a U+2581 in the text would be lost. It is written as ESCAPE
# followed by "1", and ESCAPE itself as ESCAPE followed by "0".
SPACE_MARK, ESCAPE = "\u2581", "\ue000"
_ESCAPES = ((ESCAPE, ESCAPE + "0"), (SPACE_MARK, ESCAPE + "1"))


class VocabularyTooLargeError(T2TError):
    """The text is too small for a vocabulary of this size; `max_size` is the largest possible one."""

    def __init__(self, vocab_size: int, max_size: int) -> None:
        super().__init__(
            f"--vocab_size={vocab_size}: the text yields at most {max_size} pieces; "
            f"give --vocab_size={max_size} or less"
        )
        self.max_size = max_size


class Vocabulary(TextEncoder):
    """A SentencePiece model.

    Args:
        path: the model file, as `train` writes it.
        content: its bytes. `None` reads them.

    Raises:
        T2TError: the file is missing or corrupt, or has other ids for PAD and EOS.
    """

    def __init__(self, path: str | Path, content: bytes | None = None) -> None:
        super().__init__(path, content)
        sentencepiece.set_min_log_level(ERRORS_ONLY)
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=self.content or b"\0")
        except (RuntimeError, UnicodeDecodeError) as error:  # the latter of its own message
            raise T2TError(f"{path}: corrupt, or not a SentencePiece model; put a valid copy back") from error
        if (self._processor.pad_id(), self._processor.eos_id()) != (PAD, EOS):
            raise T2TError(
                f"{path}: PAD and EOS of this vocabulary are not {PAD} and {EOS}; make one with t2t-datagen"
            )
        self.unknown = self._processor.unk_id()
        has_bytes = self._processor.is_byte(self._processor.piece_to_id(FIRST_BYTE))  # for any character
        self.banned = PAD if has_bytes else self.unknown

    @property
    def size(self) -> int:
        """Number of ids, PAD, EOS and UNK included."""
        return self._processor.get_piece_size()

    @cached_property
    def pieces(self) -> list[str]:
        """The piece of each id, as SentencePiece writes it."""
        return [self._processor.id_to_piece(piece) for piece in range(self.size)]

    @cached_property
    def tags(self) -> list[str]:
        symbols = (piece for number, piece in enumerate(self.pieces) if self._is_symbol(number))
        return [piece[:-1] for piece in symbols if piece.endswith(SPACE_MARK)]

    def _is_symbol(self, number: int) -> bool:
        # 0.0 is the score of bytes, symbols and the like, -0.0 that of the first merge.
        return math.copysign(1, self._processor.get_score(number)) > 0

    def missing(self, symbols: Iterable[str]) -> list[str]:
        """Returns those of the given texts that are not a single piece."""
        known = set(self.pieces)
        return [symbol for symbol in symbols if as_piece(symbol) not in known]

    def encode(self, text: str) -> list[int]:
        return self._processor.encode(_escape(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return self._processor.encode([_escape(text) for text in texts], num_threads=1)

    def content_with(self, pieces: Sequence[str], symbols: Sequence[str] = ()) -> bytes:
        """Returns the file's content with further symbols, which are never cut, and then further pieces.

        The pieces are merged after all others, in their order; both are written as in pieces.
        """
        last = min(self._processor.get_score(piece) for piece in range(self.size))
        added = [(symbol, 0.0, SYMBOL) for symbol in symbols]
        added += [(piece, last - number, NORMAL) for number, piece in enumerate(pieces, start=1)]
        return with_pieces(self.content, self.size + len(added), added)

    def split(self, piece: str) -> list[str]:
        """Splits a text that is written as in pieces into pieces."""
        return self._processor.encode(piece, out_type=str)

    def parts(self, piece: str) -> list[int]:
        return self._processor.encode(piece)

    def decode(self, ids: Iterable[int]) -> str:
        text = self._processor.decode(until_eos(ids))
        for character, escaped in reversed(_ESCAPES):
            text = text.replace(escaped, character)
        return text

    def splits(self) -> Splits:
        scores = [self._processor.get_score(piece) for piece in range(self.size)]
        pieces = ["" if self._is_symbol(number) else piece for number, piece in enumerate(self.pieces)]
        return merge_splits(pieces, [-score for score in scores])

    @cached_property
    def graph(self) -> SentencePieceGraph:
        from t2t_revival.data.vocabulary.graphs import SentencePieceGraph

        return SentencePieceGraph(self.content, _ESCAPES)

    @classmethod
    def train(
        cls, lines: Iterable[str], path: str | Path, vocab_size: int, user_symbols: Sequence[str] = ()
    ) -> Vocabulary:
        """Trains a vocabulary deterministically and writes it atomically to `path`.

        Args:
            lines: the text; held in memory.
            path: the file to write.
            vocab_size: number of pieces, including PAD, EOS, UNK and the 256 bytes.
            user_symbols: texts that are always one piece.

        Raises:
            VocabularyTooLargeError: the text yields fewer pieces.
            T2TError: there is no text, or `vocab_size` is too small for its characters.
        """
        model = io.BytesIO()
        sentencepiece.set_min_log_level(ERRORS_ONLY)
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(_escape(line) for line in lines if line),
                model_writer=model,
                model_type="bpe",
                vocab_size=vocab_size,
                user_defined_symbols=list(map(as_piece, user_symbols)),
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
        write_whole(Path(path), model.getvalue())
        return cls(path)


def with_pieces(model: bytes, size: int, added: Iterable[tuple[str, float, int]]) -> bytes:
    """Returns a model of `size` pieces, the last of which are added: text, score, and kind of each.

    In the format of protocol buffers, what follows a message is part of it: items of a repeated field
    (`ModelProto.pieces`), and a later value of another one (`trainer_spec.vocab_size`).
    """
    pieces = (
        field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + b"\x18" + varint(kind))
        for text, score, kind in added
    )
    return model + b"".join(pieces) + field(2, b"\x20" + varint(size))


def _escape(text: str) -> str:
    for character, escaped in _ESCAPES:
        text = text.replace(character, escaped)
    return text


def as_piece(symbol: str) -> str:
    """A text as SentencePiece writes it in pieces."""
    return _escape(symbol).replace(" ", SPACE_MARK)


def _training_error(message: str, vocab_size: int) -> T2TError:
    """Translates SentencePiece's error message."""
    if max_size := re.search(r"too high .*<= (\d+)", message):
        return VocabularyTooLargeError(vocab_size, int(max_size[1]))
    if min_size := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return T2TError(
            f"--vocab_size={vocab_size}: too small, bytes and the text's Unicode characters need "
            f"{min_size[1]} pieces"
        )
    if "sentences_.empty()" in message:
        return T2TError("no text to train a vocabulary on: every line is empty")
    return T2TError(f"--vocab_size={vocab_size}: no vocabulary could be trained: {message}")
