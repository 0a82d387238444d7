"""`SubwordVocabulary`: T2T's `SubwordTextEncoder`, with the same file and the same ids.

See `subword_format` for how a text is split and escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

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
from t2t_revival.data.vocabulary.text_encoder import EOS, Splits, TextEncoder, merge_splits, until_eos
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import write_whole

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.graphs import SubwordGraph


UNSAVED = Path("unsaved.subwords")  # the path of a vocabulary in memory
CACHED_RUNS = 2**18


class SubwordVocabulary(TextEncoder):
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

    def __init__(self, path: str | Path, content: bytes | None = None) -> None:
        super().__init__(path, content)
        self.subtokens = read_subtokens(self.content, path)
        self._ids = {subtoken: token for token, subtoken in enumerate(self.subtokens) if subtoken}
        self.alphabet = {c for subtoken in self.subtokens for c in subtoken}.union(ESCAPE_CHARACTERS)
        if missing := sorted(self.alphabet.difference(self._ids)):
            raise T2TError(
                f"{path}: not a T2T vocabulary, or a corrupt one: {missing[0]!r} is not a subtoken"
            )
        self._max_length = max(map(len, self.subtokens))
        self._run_ids = lru_cache(CACHED_RUNS)(self._encode_run)

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
        """Builds a vocabulary within 1% of `target_size` subtokens by bisection of `min_count`.

        The search is from `min_val` to `max_val`. For the other arguments, see `build_from_token_counts`.

        Raises:
            T2TError: as `build_from_token_counts`.
        """
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
            num_iterations: number of iterations; see `frequent_subtokens`.
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
        write_whole(Path(path), content)
        return SubwordVocabulary(path)

    @property
    def size(self) -> int:
        return len(self.subtokens)

    @cached_property
    def pieces(self) -> list[str]:
        """The subtoken of each id; "<unused_ID>" where it is empty or a repetition."""
        return [
            subtoken if self._ids.get(subtoken) == token else f"<unused_{token}>"
            for token, subtoken in enumerate(self.subtokens)
        ]

    def encode(self, text: str) -> list[int]:
        return [token for run in split_runs(text) for token in self._run_ids(run)]

    def parts(self, piece: str) -> list[int]:
        known = "".join(c if c in self.alphabet else f"\\{ord(c)};" for c in piece)
        return [self._ids[subtoken] for subtoken in longest_match(known, self._ids, self._max_length)]

    def decode(self, ids: Iterable[int]) -> str:
        runs = "".join(self.subtokens[token] for token in until_eos(ids)).split(END)
        words = [unescape(run) for run in runs if run]
        others = [
            f" {after}" if is_alphanumeric(before[0]) and is_alphanumeric(after[0]) else after
            for before, after in pairwise(words)
        ]
        return "".join(words[:1] + others)

    def splits(self) -> Splits:
        pieces = [
            subtoken if self._ids.get(subtoken) == token > EOS else ""
            for token, subtoken in enumerate(self.subtokens)
        ]
        return merge_splits(pieces, range(self.size))  # frequent subtokens come first

    @cached_property
    def graph(self) -> SubwordGraph:
        from t2t_revival.data.vocabulary.graphs import SubwordGraph

        return SubwordGraph(self.subtokens)

    def _encode_run(self, run: str) -> list[int]:
        subtokens = longest_match(escape(run, self.alphabet), self._ids, self._max_length)
        return [self._ids[subtoken] for subtoken in subtokens]


def frequent_subtokens(
    token_counts: Mapping[str, int],
    min_count: int,
    num_iterations: int,
    reserved: Sequence[str],
    max_length: int | None,
) -> list[str]:
    """Returns the subtokens in the order of their ids: `reserved` ones, then by falling frequency.

    Each iteration splits all runs into the subtokens of the iteration before and counts the substrings that
    begin where one of these begins. A substring is kept if it is frequent enough; the count of a longer one
    is subtracted from the counts of its prefixes. Single characters are always kept (T2T's
    `SubwordTextEncoder.build_from_token_counts`).
    """
    alphabet = {c for token in (*token_counts, *reserved) for c in token}.union(ESCAPE_CHARACTERS) - {"\n"}
    subtokens = list(alphabet)
    for _ in range(num_iterations):
        counts = _substring_counts(token_counts, alphabet, subtokens, max_length)
        kept = _frequent(counts, max(1, min_count)) | alphabet
        subtokens = sorted(kept, key=lambda subtoken: (counts[subtoken], subtoken), reverse=True)
    return [*(escape(token, alphabet) for token in reserved), *subtokens]


def _substring_counts(
    token_counts: Mapping[str, int], alphabet: set[str], subtokens: Sequence[str], max_length: int | None
) -> Counter[str]:
    """Counts the substrings of escaped runs that begin where a subtoken begins."""
    counts: Counter[str] = Counter()
    known, longest = frozenset(subtokens), max(map(len, subtokens))
    for token, occurrences in token_counts.items():
        text, start = escape(token, alphabet), 0
        for subtoken in longest_match(text, known, longest):
            stop = len(text) + 1 if max_length is None else min(len(text) + 1, start + max_length)
            for end in range(start + 1, stop):
                counts[text[start:end]] += occurrences
            start += len(subtoken)
    return counts


def _frequent(counts: Counter[str], min_count: int) -> set[str]:
    """Returns the frequent substrings; subtracts their counts from those of their prefixes in `counts`."""
    kept = set()
    candidates = [substring for substring, count in counts.items() if count >= min_count]
    for substring in sorted(candidates, key=len, reverse=True):
        if counts[substring] < min_count:
            continue
        kept.add(substring)
        for end in range(1, len(substring)):
            counts[substring[:end]] -= counts[substring]
    return kept
