"""`MarianVocabulary`: SentencePiece models of source and target over one table of pieces, as Marian has them.

Its file, vocab.*.marian, is an uncompressed zip of `source.spm`, `target.spm` if that is another one, and
`vocab.json`, the table: Marian's id of each piece. Ids here are Marian's in their order, after PAD and EOS.

M2M100 and NLLB have such a table too, of which some pieces may be missing. `tags.json` has the pieces, of
languages, that they put around texts of each side.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sentencepiece

from t2t_revival.data.vocabulary.sentencepiece import ERRORS_ONLY, SPACE_MARK
from t2t_revival.data.vocabulary.text_encoder import PAD, Splits, TextEncoder, merge_splits, until_eos
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.graphs import MarianGraph

EOS_PIECE, UNKNOWN_PIECE, PAD_PIECE = "</s>", "<unk>", "<pad>"
SOURCE, TARGET, TABLE, TAGS = "source.spm", "target.spm", "vocab.json", "tags.json"
TAG = re.compile("^(>>.*?<<)")  # such as >>fra<<, before a text: a piece of its own
WRITTEN = (1980, 1, 1, 0, 0, 0)  # the time of all files, so that equal vocabularies are equal files


class Around(NamedTuple):
    """Pieces that stand before and after each text of a side; "" for none."""

    before: str = ""
    after: str = ""


class MarianVocabulary(TextEncoder):
    """One side of such a vocabulary.

    It encodes and decodes as `MarianTokenizer` of transformers: a leading tag such as >>fra<< is one piece,
    and SentencePiece normalises the rest. Texts of the vocabulary's own special pieces are plain text. A
    vocabulary of M2M100 or NLLB encodes as `M2M100Tokenizer` or `NllbTokenizer`.

    Args:
        path: the file.
        content: its bytes. `None` reads them.
        is_target: whether texts are targets.

    Raises:
        T2TError: the file is missing or corrupt.
    """

    def __init__(self, path: str | Path, content: bytes | None = None, is_target: bool = False) -> None:
        super().__init__(path, content)
        self._is_target = is_target
        sentencepiece.set_min_log_level(ERRORS_ONLY)
        try:
            with zipfile.ZipFile(io.BytesIO(self.content)) as file:
                name = TARGET if is_target and TARGET in file.namelist() else SOURCE
                self.model, table = file.read(name), json.loads(file.read(TABLE))
                tags = json.loads(file.read(TAGS)) if TAGS in file.namelist() else {}
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=self.model or b"\0")
            self._pieces = in_order(table, may_lack=bool(tags))
            self.around = {side: Around(*pieces) for side, pieces in tags.items()}
        except (zipfile.BadZipFile, KeyError, ValueError, RuntimeError) as error:
            raise T2TError(
                f"{path}: corrupt, or not a vocabulary of t2t-import-checkpoint: {error}"
            ) from error
        self.marian_ids: dict[str, int] = table
        self._ids = {piece: token for token, piece in enumerate(self._pieces)}
        self.unknown = self._ids[UNKNOWN_PIECE]
        self.banned = PAD if tags else self.unknown
        self._around = self.around.get("target" if is_target else "source", Around())
        if is_target and tags:
            self.first = self._ids[self._around.before]

    def __reduce__(self) -> tuple[type[TextEncoder], tuple[Any, ...]]:
        return type(self), (self.path, self._given_content, self._is_target)

    @property
    def of_targets(self) -> MarianVocabulary:
        return self if self._is_target else MarianVocabulary(self.path, self.content, is_target=True)

    @property
    def size(self) -> int:
        return len(self.pieces)

    @property
    def pieces(self) -> list[str]:
        return self._pieces

    @cached_property
    def tags(self) -> list[str]:
        return [piece for piece in self.pieces if TAG.fullmatch(piece)]

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        if self.around:
            encoded = self._processor.encode(texts, out_type=str, num_threads=1)
            before, after = ([piece] if piece else [] for piece in self._around)
            return [self._numbers([*before, *pieces, *after]) for pieces in encoded]
        plain = [TAG.sub("", text) for text in texts]
        encoded = self._processor.encode(plain, out_type=str, num_threads=1)
        tags = [[match[0]] if (match := TAG.match(text)) else [] for text in texts]
        return [self._numbers([*tag, *pieces]) for tag, pieces in zip(tags, encoded, strict=True)]

    def _numbers(self, pieces: Sequence[str]) -> list[int]:
        return [self._ids.get(piece, self.unknown) for piece in pieces]

    @cached_property
    def silent(self) -> set[int]:
        """The ids without text: the unknown piece, and of M2M100 and NLLB all but those of SentencePiece."""
        if not self.around:
            return {self.unknown}
        processor = self._processor
        numbers = [*map(processor.piece_to_id, self.pieces)]
        return {
            token
            for token, number in enumerate(numbers)
            if processor.is_unknown(number) or processor.is_control(number)
        }

    def decode(self, ids: Iterable[int]) -> str:
        pieces = [self.pieces[token] for token in until_eos(ids) if token not in self.silent]
        return str(self._processor.decode(pieces)).replace(SPACE_MARK, " ").strip()

    def parts(self, piece: str) -> list[int]:
        cut = min((best_cut(piece, side.scores)[1] for side in self.sides), key=len)
        return [self._ids.get(part, self.unknown) for part in cut]

    def normalized(self, text: str) -> str:
        """Returns a text as pieces are cut from it, with marks for spaces."""
        return str(self._processor.normalize(text))

    def split(self, text: str) -> list[str]:
        """Splits a word of a normalised text into pieces."""
        return list(self._processor.encode(text, out_type=str))

    @cached_property
    def scores(self) -> dict[str, float]:
        """The score of each piece of the side's SentencePiece model, in the order of its own ids."""
        numbers = range(self._processor.get_piece_size())
        return {self._processor.id_to_piece(number): self._processor.get_score(number) for number in numbers}

    def splits(self) -> Splits:
        known = [piece if piece in self.scores and not TAG.fullmatch(piece) else "" for piece in self.pieces]
        return merge_splits(known, [-self.scores.get(piece, 0.0) for piece in self.pieces])

    @cached_property
    def sides(self) -> list[MarianVocabulary]:
        """One side, or both if their SentencePiece models are not the same."""
        source = MarianVocabulary(self.path, self.content)
        return [source] if source.model == source.of_targets.model else [source, source.of_targets]

    @cached_property
    def graph(self) -> MarianGraph:
        from t2t_revival.data.vocabulary.graphs import MarianGraph

        tag = "" if self.around else TAG.pattern
        return MarianGraph(self.model, self._ids, self.unknown, tag, SPACE_MARK, self._around, self.silent)


def check_plain(vocabulary: TextEncoder, holder: str) -> None:
    """Raises T2TError if a vocabulary puts languages around texts, which a holder of models does not."""
    if isinstance(vocabulary, MarianVocabulary) and vocabulary.around:
        raise T2TError(
            f"{holder} puts no languages around texts, as {vocabulary.path} of M2M100 or NLLB does: give "
            "--format=ctranslate2"
        )


def best_cut(text: str, scores: Mapping[str, float]) -> tuple[float, list[str]]:
    """Returns the best sum of scores of pieces that make a text, and the pieces; each character is one."""
    lowest = min(scores.values())
    best: list[tuple[float, list[str]]] = [(0.0, [])]
    for end in range(1, len(text) + 1):
        cuts = ((start, text[start:end]) for start in range(end))
        known = [(start, piece) for start, piece in cuts if piece in scores or len(piece) == 1]
        best.append(
            max(
                (best[start][0] + scores.get(piece, lowest), [*best[start][1], piece])
                for start, piece in known
            )
        )
    return best[-1]


def in_order(table: Mapping[str, int], may_lack: bool = False) -> list[str]:
    """Returns the pieces of a table in the order of their ids here: PAD, EOS, then Marian's.

    Raises:
        ValueError: there is no EOS or unknown piece, or ids are not 0, 1, 2 and so on, where none `may_lack`.
    """
    ordered = sorted(table, key=table.__getitem__)
    is_whole = may_lack or [table[piece] for piece in ordered] == list(range(len(table)))
    if not (is_whole and EOS_PIECE in table and UNKNOWN_PIECE in table):
        raise ValueError(f"it lacks {EOS_PIECE} or {UNKNOWN_PIECE}, or its ids are not 0, 1, 2 and so on")
    first = [PAD_PIECE, EOS_PIECE]
    return [*first, *(piece for piece in ordered if piece not in first)]


def table_of(model: bytes, path: Path) -> dict[str, int]:
    """Returns the table of a SentencePiece model that Marian has as its vocabulary.

    Raises:
        T2TError: it is no such model.
    """
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model or b"\0")
    except RuntimeError as error:
        raise T2TError(f"{path}: corrupt, or not a SentencePiece model; get it again") from error
    return {processor.id_to_piece(number): number for number in range(processor.get_piece_size())}


def pack(
    table: Mapping[str, int], source: bytes, target: bytes, around: Mapping[str, Around] | None = None
) -> bytes:
    """Returns the content of the file of a vocabulary.

    Args:
        table: Marian's id of each piece.
        source: the SentencePiece model of sources.
        target: that of targets, which may be the same.
        around: by "source" and "target", of M2M100 and NLLB.
    """
    files = {SOURCE: source, TABLE: json.dumps(dict(table), ensure_ascii=False).encode()}
    if around:
        files[TAGS] = json.dumps(dict(around), ensure_ascii=False).encode()
    if target != source:
        files[TARGET] = target
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for name in sorted(files):
            file.writestr(zipfile.ZipInfo(name, WRITTEN), files[name])
    return written.getvalue()
