"""Frequent subtokens of a text, as T2T's `SubwordTextEncoder.build_from_token_counts` selects them.

Each iteration splits all runs into the subtokens of the iteration before and counts the substrings that
begin where one of these begins. A substring is kept if it is frequent enough; the count of a longer one is
subtracted from the counts of its prefixes. Single characters are always kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from t2t_revival.data.vocabulary.subword_format import ESCAPE_CHARACTERS, escape, longest_match


def frequent_subtokens(
    token_counts: Mapping[str, int],
    min_count: int,
    num_iterations: int,
    reserved: Sequence[str],
    max_length: int | None,
) -> list[str]:
    """Returns the subtokens in the order of their ids: `reserved` ones, then by falling frequency.

    For the arguments, see `SubwordVocabulary.build_from_token_counts`.
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
