"""Vocabularies of multilingual models, reduced to the pieces that the text of one pair needs."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import sentencepiece

from t2t_revival.data.records import field
from t2t_revival.data.vocabulary.sentencepiece import SPACE_MARK
from t2t_revival.errors import T2TError, at
from t2t_revival.problems import Problem
from t2t_revival.utils.files import file_lines

PIECES = 1  # number of the field of a model's pieces, of which the first field is the text
UNUSED = b"\x18\x05"  # the kind of a piece that may be merged on, but is in no text


def lines_of(named: str, problem: Problem) -> Iterator[str]:
    """Yields the lines of text files, separated by commas, or both sides of train of a data source.

    Raises:
        T2TError: one cannot be read.
    """
    files = [Path(name).expanduser() for name in named.split(",")]
    if all(file.is_file() for file in files):
        for file in files:
            yield from file_lines(file)
        return
    with at("--keep_vocab_of takes text files or a data_source"):
        source = problem.make_source(named, None)
        pairs = source.counts()["train"]
    for row in source.rows("train", 0, pairs):
        yield from (row.source, row.target)


def kept_pieces(model: bytes, lines: Iterable[str]) -> set[str]:
    """Returns the pieces that lines are cut into, all bytes, and the characters of the lines' scripts.

    Raises:
        T2TError: there are no lines with text.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    kept: set[int] = set()
    for line in lines:
        kept.update(processor.encode(line))
    if not kept:
        raise T2TError("--keep_vocab_of: there is no text")
    scripts = {_script(character) for number in kept for character in pieces[number]}
    for number, piece in enumerate(pieces):
        text = piece.removeprefix(SPACE_MARK) or piece
        if processor.is_byte(number) or (len(text) == 1 and _script(text) in scripts | {""}):
            kept.add(number)
    return {pieces[number] for number in kept}


def _script(character: str) -> str:
    """Returns the script of a letter, the first word of its name, such as "GREEK"; "" of others."""
    is_letter = unicodedata.category(character)[0] in "LM"
    return unicodedata.name(character, "").partition(" ")[0] if is_letter else ""


def trimmed(model: bytes, kept: Iterable[str]) -> bytes:
    """Returns a SentencePiece model that has only some pieces in texts.

    The others stay as steps of merges, so that a text is cut as before if it was cut into kept pieces; they
    are cut again where they are left.
    """
    texts = {piece.encode() for piece in kept}
    written, at = [], 0
    while at < len(model):
        number, content, end = _field(model, at)
        if number == PIECES and _field(content, 0)[1] not in texts:
            written.append(field(PIECES, content + UNUSED))
        else:
            written.append(model[at:end])
        at = end
    return b"".join(written)


def _field(message: bytes, at: int) -> tuple[int, bytes, int]:
    """Returns the number of a field of protocol buffers, its content and its end; it has a length."""
    key, at = _varint(message, at)
    if key & 7 != 2:
        raise T2TError("the SentencePiece model is not of the form that is known: leave out --keep_vocab_of")
    size, at = _varint(message, at)
    return key >> 3, message[at : at + size], at + size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
