"""Subtokens from text, as T2T's `SubwordTextEncoder.build_to_target_size` finds them.

A subtoken is kept if it is frequent: each run of characters is cut into the subtokens found so far, and all
its pieces that begin where one of these does are counted. A longer piece is preferred, and what it occurs is
taken from the counts of its beginnings. A few rounds of this, and each character by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from t2t_revival.errors import T2TError

END = "_"  # of a run
ESCAPE_CHARACTERS = "\\_u;0123456789"
RESERVED = ("<pad>", "<EOS>")  # ids 0 and 1


def escaped(run: str, alphabet: Collection[str]) -> str:
    """A run in characters of an alphabet, with its end marked."""
    text = run.replace("\\", "\\\\").replace(END, "\\u")
    return "".join(c if c in alphabet and c != "\n" else f"\\{ord(c)};" for c in text) + END


def longest_first(text: str, known: Collection[str], longest: int) -> Iterator[str]:
    """Cuts an escaped run into known subtokens, each the longest that fits.

    Args:
        text: the run, of whose characters each is known.
        known: the subtokens.
        longest: characters of the longest of them.
    """
    start = 0
    while start < len(text):
        ends = range(min(len(text), start + longest), start, -1)
        end = next(end for end in ends if text[start:end] in known)
        yield text[start:end]
        start = end


def from_counts(
    token_counts: Mapping[str, int],
    min_count: int,
    num_iterations: int = 4,
    reserved_tokens: Sequence[str] | None = None,
    max_subtoken_length: int | None = None,
) -> list[str]:
    """Subtokens in the order of their ids: the reserved ones, then the most frequent first.

    Args:
        token_counts: runs of characters, each with how often it occurs.
        min_count: rarer subtokens are left out, single characters excepted.
        num_iterations: rounds.
        reserved_tokens: texts of the first ids; None: "<pad>" and "<EOS>", with which others must begin.
        max_subtoken_length: characters of the longest; None: any, which takes time where runs are long.

    Raises:
        T2TError: the reserved tokens do not begin with "<pad>" and "<EOS>".
    """
    reserved = RESERVED if reserved_tokens is None else tuple(reserved_tokens)
    if reserved[: len(RESERVED)] != RESERVED:
        raise T2TError(f"reserved_tokens={list(reserved)}: they must begin with {list(RESERVED)}")
    alphabet = {c for token in (*token_counts, *reserved) for c in token}.union(ESCAPE_CHARACTERS) - {"\n"}
    found = list(alphabet)
    for _ in range(num_iterations):
        counts = _piece_counts(token_counts, alphabet, found, max_subtoken_length)
        kept = _frequent(counts, max(1, min_count)) - alphabet
        found = sorted(kept | alphabet, key=lambda piece: (counts[piece], piece), reverse=True)
    return [*(escaped(token, alphabet) for token in reserved), *found]


def near_size(
    target_size: int,
    token_counts: Mapping[str, int],
    min_val: float,
    max_val: float,
    max_subtoken_length: int | None = None,
    reserved_tokens: Sequence[str] | None = None,
    num_iterations: int = 4,
) -> list[str]:
    """`from_counts` with the `min_count` between two bounds that comes nearest to a size, found by bisection.

    Args:
        target_size: subtokens that are wanted; within 1% is near enough.
        token_counts: see `from_counts`.
        min_val: the lowest `min_count`.
        max_val: the highest.
        max_subtoken_length: see `from_counts`.
        reserved_tokens: see `from_counts`.
        num_iterations: see `from_counts`.

    Raises:
        T2TError: the bounds are crossed, the size is none; see `from_counts`.
    """
    if target_size < 1 or min_val > max_val:
        raise T2TError(f"no vocabulary of {target_size} subtokens with counts from {min_val} to {max_val}")
    low, high = int(min_val), int(max_val)
    tried: list[list[str]] = []
    while True:
        count = (low + high) // 2
        found = from_counts(token_counts, count, num_iterations, reserved_tokens, max_subtoken_length)
        tried.append(found)
        if abs(len(found) - target_size) * 100 < target_size or low >= high or count < 2:
            return min(tried, key=lambda subtokens: abs(len(subtokens) - target_size))
        low, high = (count + 1, high) if len(found) > target_size else (low, count - 1)


def _piece_counts(
    token_counts: Mapping[str, int], alphabet: set[str], known: Sequence[str], most: int | None
) -> Counter[str]:
    """How often pieces occur that begin where one of the known subtokens does."""
    counts: Counter[str] = Counter()
    members, longest = frozenset(known), max(map(len, known))
    for token, occurs in token_counts.items():
        text, start = escaped(token, alphabet), 0
        for subtoken in longest_first(text, members, longest):
            last = len(text) + 1 if most is None else min(len(text) + 1, start + most)
            for end in range(start + 1, last):
                counts[text[start:end]] += occurs
            start += len(subtoken)
    return counts


def _frequent(counts: Counter[str], min_count: int) -> set[str]:
    """Pieces that occur so often beside the longer ones that are kept; changes `counts` to that."""
    kept = set()
    for piece in sorted(
        (piece for piece, count in counts.items() if count >= min_count), key=len, reverse=True
    ):
        if counts[piece] < min_count:
            continue
        kept.add(piece)
        for end in range(1, len(piece)):
            counts[piece[:end]] -= counts[piece]
    return kept
