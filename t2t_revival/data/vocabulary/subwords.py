"""`SubwordVocabulary`: T2T's `SubwordTextEncoder`, with the same file and the same ids.

See `subword_format` for how a text is split and escaped.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival.data.vocabulary.sentencepiece import PAD, until_eos
from t2t_revival.data.vocabulary.subword_format import (
    END,
    ESCAPE_CHARACTERS,
    RESERVED,
    escape,
    is_alphanumeric,
    longest_match,
    read_subtokens,
    split_runs,
    subtoken_lines,
    unescape,
)
from t2t_revival.data.vocabulary.subwords_building import frequent_subtokens
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import atomic_write

if TYPE_CHECKING:
    import tensorflow as tf

    from t2t_revival.data.vocabulary.subwords_graph import SubwordGraph

UNSAVED = Path("unsaved.subwords")  # the path of a vocabulary in memory
CACHED_RUNS = 2**18


class SubwordVocabulary:
    """A T2T subword vocabulary; id 0 is PAD, id 1 is EOS, and every text has ids.

    Python's Unicode tables decide which characters are letters and numbers, as in T2T.

    Args:
        path: the file, one subtoken per line, in quotes or without. An empty subtoken is an id that no text
            is encoded to and that decodes to nothing.
        content: the file's content. `None` reads it from `path`.

    Attributes:
        subtokens: the subtoken of each id.
        alphabet: all characters of subtokens, and those of escapes.

    Example:
        SubwordVocabulary.build_from_generator(lines, 8000).store_to_file("vocab.mine.8000.subwords")

    Raises:
        T2TError: the file is missing or not such a vocabulary.
    """

    unknown = PAD

    def __init__(self, path: str | Path, content: bytes | None = None) -> None:
        self.path, self._content_argument = Path(path), content
        try:
            self.content = self.path.read_bytes() if content is None else content
        except FileNotFoundError as error:
            raise T2TError(f"{path}: no such vocabulary") from error
        self.subtokens = read_subtokens(self.content, path)
        self._ids = {subtoken: token for token, subtoken in enumerate(self.subtokens) if subtoken}
        self.alphabet = {c for subtoken in self.subtokens for c in subtoken}.union(ESCAPE_CHARACTERS)
        if missing := sorted(self.alphabet.difference(self._ids)):
            raise T2TError(
                f"{path}: not a T2T vocabulary, or a damaged one: the character {missing[0]!r} is no subtoken"
            )
        self._max_length = max(map(len, self.subtokens))
        self._run_ids = lru_cache(CACHED_RUNS)(self._encode_run)

    def __reduce__(self) -> tuple[type[SubwordVocabulary], tuple[Path, bytes | None]]:
        return SubwordVocabulary, (self.path, self._content_argument)

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
        """Builds a vocabulary of about `target_size` subtokens by bisection of `min_count`.

        Args:
            target_size: number of subtokens; the search stops within 1% of it.
            token_counts: see `build_from_token_counts`.
            min_val: the lowest `min_count` to try.
            max_val: the highest `min_count` to try.
            max_subtoken_length: see `build_from_token_counts`.
            reserved_tokens: see `build_from_token_counts`.
            num_iterations: see `build_from_token_counts`.

        Raises:
            T2TError: `target_size` is below 1, or `min_val` above `max_val`; or as `build_from_token_counts`.
        """
        if target_size < 1 or min_val > max_val:
            raise T2TError(
                f"no vocabulary of {target_size} subtokens with counts from {min_val} to {max_val}"
            )
        low, high = int(min_val), int(max_val)
        tried: list[SubwordVocabulary] = []
        while True:
            count = (low + high) // 2
            tried.append(
                cls.build_from_token_counts(
                    token_counts, count, num_iterations, reserved_tokens, max_subtoken_length
                )
            )
            size = tried[-1].size
            if abs(size - target_size) * 100 < target_size or low >= high or count < 2:
                return min(tried, key=lambda vocabulary: abs(vocabulary.size - target_size))
            low, high = (count + 1, high) if size > target_size else (low, count - 1)

    @classmethod
    def build_from_token_counts(
        cls,
        token_counts: Mapping[str, int],
        min_count: int,
        num_iterations: int = 4,
        reserved_tokens: Sequence[str] | None = None,
        max_subtoken_length: int | None = None,
    ) -> SubwordVocabulary:
        """Builds a vocabulary of the frequent subtokens, in memory.

        Args:
            token_counts: number of occurrences of each run.
            min_count: subtokens that are rarer are dropped, except single characters.
            num_iterations: number of iterations; see `subwords_building`.
            reserved_tokens: texts of the first ids. `None` reserves "<pad>" and "<EOS>", with which every
                list must begin.
            max_subtoken_length: characters of the longest subtoken. `None` sets no limit, which is slow for
                long runs.

        Raises:
            T2TError: the reserved tokens do not begin with "<pad>" and "<EOS>".
        """
        reserved = RESERVED if reserved_tokens is None else tuple(reserved_tokens)
        if reserved[: len(RESERVED)] != RESERVED:
            raise T2TError(f"reserved_tokens={list(reserved)}: they must begin with {list(RESERVED)}")
        subtokens = frequent_subtokens(token_counts, min_count, num_iterations, reserved, max_subtoken_length)
        return cls(UNSAVED, subtoken_lines(subtokens, UNSAVED, "'"))

    @classmethod
    def build_from_generator(
        cls,
        generator: Iterable[str],
        target_size: int,
        max_subtoken_length: int | None = None,
        reserved_tokens: Sequence[str] | None = None,
    ) -> SubwordVocabulary:
        """Builds a vocabulary of about `target_size` subtokens of the texts of a generator."""
        counts = Counter(run for text in generator for run in split_runs(text))
        return cls.build_to_target_size(target_size, counts, 1, 1000, max_subtoken_length, reserved_tokens)

    def store_to_file(self, path: str | Path, add_single_quotes: bool = True) -> SubwordVocabulary:
        """Writes the file, one subtoken on each line.

        Args:
            path: should end in ".subwords", by which commands recognise the file.
            add_single_quotes: whether each subtoken is put into single quotes.

        Returns:
            The vocabulary of that file.

        Raises:
            T2TError: without quotes, a subtoken such as a space would be read back differently.
        """
        content = subtoken_lines(self.subtokens, path, "'" if add_single_quotes else "")
        with atomic_write(Path(path)) as file:
            file.write(content)
        return SubwordVocabulary(path)

    @property
    def size(self) -> int:
        """Number of ids, PAD and EOS included."""
        return len(self.subtokens)

    @cached_property
    def pieces(self) -> list[str]:
        """The subtoken of each id; "<unused_ID>" where it is empty or a repetition."""
        return [
            subtoken if self._ids.get(subtoken) == token else f"<unused_{token}>"
            for token, subtoken in enumerate(self.subtokens)
        ]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the file, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def encode(self, text: str) -> list[int]:
        """Returns the ids of one line, without EOS."""
        return [token for run in split_runs(text) for token in self._run_ids(run)]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the ids of each line, without EOS."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of `ids` up to the first EOS; PAD is skipped."""
        runs = "".join(self.subtokens[token] for token in until_eos(ids)).split(END)
        words = [unescape(run) for run in runs if run]
        others = [
            f" {after}" if is_alphanumeric(before[0]) and is_alphanumeric(after[0]) else after
            for before, after in pairwise(words)
        ]
        return "".join(words[:1] + others)

    @cached_property
    def _graph(self) -> SubwordGraph:
        from t2t_revival.data.vocabulary.subwords_graph import SubwordGraph

        return SubwordGraph(self.subtokens)

    @property
    def graph_resource(self) -> Any:
        """The lookup table of subtokens; an exported module must hold it as an attribute."""
        return self._graph.table

    def encode_in_graph(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """`encode_batch` as TensorFlow ops: string [batch] -> int32 [batch, None], without EOS."""
        return self._graph.encode(texts)

    def decode_in_graph(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """`decode` of each row as TensorFlow ops: int32 [batch, None] -> string [batch]."""
        return self._graph.decode(ids)

    def _encode_run(self, run: str) -> list[int]:
        subtokens = longest_match(escape(run, self.alphabet), self._ids, self._max_length)
        return [self._ids[subtoken] for subtoken in subtokens]
