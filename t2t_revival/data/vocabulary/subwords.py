"""T2T's subword vocabulary (`SubwordTextEncoder`): a file `vocab.*.subwords`, the same ids as there.

A line is cut into runs of letters and numbers and runs of anything else; a single space between two of the
former is left out. Each run is escaped, ended by "_", and cut into the longest subtokens from its start.
Escapes: "\\u" is "_", "\\\\" is "\\", "\\NNN;" is the character of that number, for all that the subtokens
do not have. A line feed is escaped always.
"""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival.data import subwords_building
from t2t_revival.data.subwords_building import END, ESCAPE_CHARACTERS, escaped, longest_first
from t2t_revival.data.vocabulary import PAD, until_eos
from t2t_revival.errors import T2TError
from t2t_revival.files import writing

if TYPE_CHECKING:
    import tensorflow as tf

    from t2t_revival.data.subwords_graph import SubwordGraph

ESCAPE = re.compile(r"\\u|\\\\|\\([0-9]+);")
NO_CHARACTER = "\u3013"  # stands for the number of no character
UNSAVED = Path("unsaved.subwords")  # the path of a vocabulary in memory
CACHED_RUNS = 2**18
QUOTES = "'\""


class SubwordVocabulary:
    """A T2T subword vocabulary; id 0 is PAD, id 1 is EOS, and any text has ids.

    Which characters are letters and numbers is said by Python's Unicode tables, as in T2T.

    Args:
        path: the file, one subtoken per line, in quotes or without. An empty subtoken is an id that no text
            has and that decodes to nothing.
        content: what is in the file, where it is not to be read.

    Example:
        SubwordVocabulary.build_from_generator(lines, 8000).store_to_file("vocab.mine.8000.subwords")

    Raises:
        T2TError: the file is missing or no such vocabulary.
    """

    unknown = PAD

    def __init__(self, path: str | Path, content: bytes | None = None) -> None:
        self.path, self._given = Path(path), content
        try:
            self.content = self.path.read_bytes() if content is None else content
            lines = self.content.decode().split("\n")
        except FileNotFoundError as error:
            raise T2TError(f"{path}: no such vocabulary") from error
        except UnicodeDecodeError as error:
            raise T2TError(f"{path}: not a T2T vocabulary: not UTF-8 text") from error
        if not lines[-1]:
            lines.pop()
        self.subtokens = [_unquoted(line.rstrip()) for line in lines]
        self._ids = {subtoken: token for token, subtoken in enumerate(self.subtokens) if subtoken}
        self.alphabet = {c for subtoken in self.subtokens for c in subtoken}.union(ESCAPE_CHARACTERS)
        if missing := sorted(self.alphabet.difference(self._ids)):
            raise T2TError(
                f"{path}: not a T2T vocabulary, or a damaged one: the character {missing[0]!r} is no subtoken"
            )
        self.longest = max(map(len, self.subtokens))
        self._run_ids = lru_cache(CACHED_RUNS)(self._encode_run)

    def __reduce__(self) -> tuple[type[SubwordVocabulary], tuple[Path, bytes | None]]:
        return SubwordVocabulary, (self.path, self._given)

    @classmethod
    def build_to_target_size(
        cls,
        target_size: int,
        token_counts: Mapping[str, int],
        min_val: float,
        max_val: float,
        max_subtoken_length: int | None = None,
        reserved_tokens: Sequence[str] | None = None,
        num_iterations: int = 4,
    ) -> SubwordVocabulary:
        """A vocabulary of about `target_size` subtokens, in memory; see `subwords_building.near_size`."""
        return cls._of(
            subwords_building.near_size(
                target_size,
                token_counts,
                min_val,
                max_val,
                max_subtoken_length,
                reserved_tokens,
                num_iterations,
            )
        )

    @classmethod
    def build_from_token_counts(
        cls,
        token_counts: Mapping[str, int],
        min_count: int,
        num_iterations: int = 4,
        reserved_tokens: Sequence[str] | None = None,
        max_subtoken_length: int | None = None,
    ) -> SubwordVocabulary:
        """A vocabulary of the subtokens that are frequent, in memory; see `subwords_building.from_counts`."""
        return cls._of(
            subwords_building.from_counts(
                token_counts, min_count, num_iterations, reserved_tokens, max_subtoken_length
            )
        )

    @classmethod
    def build_from_generator(
        cls,
        generator: Iterable[str],
        target_size: int,
        max_subtoken_length: int | None = None,
        reserved_tokens: Sequence[str] | None = None,
    ) -> SubwordVocabulary:
        """A vocabulary of about `target_size` subtokens of texts, in memory."""
        counts = Counter(run for text in generator for run in _runs(text))
        return cls.build_to_target_size(target_size, counts, 1, 1000, max_subtoken_length, reserved_tokens)

    @classmethod
    def _of(cls, subtokens: Sequence[str]) -> SubwordVocabulary:
        return cls(UNSAVED, "".join(f"'{subtoken}'\n" for subtoken in subtokens).encode())

    def store_to_file(self, path: str | Path, add_single_quotes: bool = True) -> SubwordVocabulary:
        """Writes the file, one subtoken on each line.

        Args:
            path: its name should end in ".subwords", by which commands know what it is.
            add_single_quotes: whether each is put into single quotes.

        Returns:
            The vocabulary of that file.

        Raises:
            T2TError: without quotes, a subtoken would not come back as it is, such as a space.
        """
        quote = "'" if add_single_quotes else ""
        lines = [f"{quote}{subtoken}{quote}" for subtoken in self.subtokens]
        if lost := [
            s for s, line in zip(self.subtokens, lines, strict=True) if _unquoted(line.rstrip()) != s
        ]:
            raise T2TError(f"{path}: the subtoken {lost[0]!r} needs quotes: add_single_quotes=True")
        with writing(Path(path)) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
        return SubwordVocabulary(path)

    @property
    def size(self) -> int:
        """How many ids there are, PAD and EOS included."""
        return len(self.subtokens)

    @cached_property
    def pieces(self) -> list[str]:
        """The subtoken of each id; where it is empty or comes twice, a name that no text has."""
        return [
            subtoken if self._ids.get(subtoken) == token else f"<unused_{token}>"
            for token, subtoken in enumerate(self.subtokens)
        ]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the file, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def encode(self, text: str) -> list[int]:
        """The ids of one line, without EOS."""
        return [token for run in _runs(text) for token in self._run_ids(run)]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many lines, without EOS."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """The line that `ids` stand for, up to the first EOS, without PAD."""
        runs = "".join(self.subtokens[token] for token in until_eos(ids)).split(END)
        words = [ESCAPE.sub(_unescaped, run) for run in runs if run]
        others = [
            f" {after}" if is_alphanumeric(before[0]) and is_alphanumeric(after[0]) else after
            for before, after in pairwise(words)
        ]
        return "".join(words[:1] + others)

    @cached_property
    def _graph(self) -> SubwordGraph:
        from t2t_revival.data.subwords_graph import SubwordGraph

        return SubwordGraph(self)

    @property
    def graph_resource(self) -> Any:
        """The table of subtokens; an exported module must hold it as an attribute."""
        return self._graph.table

    def encode_in_graph(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """`encode_batch` as TensorFlow ops: string [batch] -> int32 [batch, None], without EOS."""
        return self._graph.encode(texts)

    def decode_in_graph(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """`decode` of each as TensorFlow ops: int32 [batch, None] -> string [batch]."""
        return self._graph.decode(ids)

    def _encode_run(self, run: str) -> list[int]:
        pieces = longest_first(escaped(run, self.alphabet), self._ids, self.longest)
        return [self._ids[piece] for piece in pieces]


def _unquoted(line: str) -> str:
    quoted = line[:1] in QUOTES and line[:1] == line[-1:]
    return line[1:-1] if quoted else line


def _runs(text: str) -> list[str]:
    """What is encoded by itself: all runs but single spaces inside the line."""
    runs = ["".join(characters) for _, characters in groupby(text, is_alphanumeric)]
    return runs[:1] + [run for run in runs[1:-1] if run != " "] + runs[1:][-1:]


@lru_cache(2**16)
def is_alphanumeric(character: str) -> bool:
    """Whether it is of Unicode's categories L or N."""
    return unicodedata.category(character)[0] in "LN"


@lru_cache(1)
def alphanumeric_bounds() -> list[int]:
    """Where ranges of such characters begin and end: code points, in turn the first in and the first out."""
    kinds = groupby(range(sys.maxunicode + 1), lambda code: unicodedata.category(chr(code))[0] in "LN")
    return [next(codes) for _, codes in kinds][1:]


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is None:
        return "_" if match[0] == "\\u" else "\\"
    return character(match[1])


def character(number: str) -> str:
    """The character of a decimal number; U+3013 if it is that of none, or of half a surrogate pair."""
    digits = number.lstrip("0")
    code = int(digits or "0") if len(digits) <= len(str(sys.maxunicode)) else sys.maxunicode + 1
    return NO_CHARACTER if code > sys.maxunicode or 0xD800 <= code < 0xE000 else chr(code)
