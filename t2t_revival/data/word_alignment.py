"""Word alignments: which words of a target translate which words of a source.

Words are what stands between spaces and tabs, counted from 0; a no-break space is part of a word. A line of a
file, one for each pair, has the links in Pharaoh's format, "0-0 1-2": source word, target word. In gold
alignments, a link "1?2" or "1p2" is possible, where one with "-" is sure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.data.vocabulary.spans import split_words, token_spans, words_of_text
from t2t_revival.errors import T2TError, at

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies

Link = tuple[int, int]  # source word, target word
LINK = re.compile(r"(\d+)([-?p])(\d+)", re.ASCII)
SURE = "-"


class Alignment(NamedTuple):
    """Links of a pair: the sure ones, and the possible ones, which are all; none is twice in either."""

    sure: frozenset[Link]
    possible: frozenset[Link]


def parse_pharaoh(line: str) -> Alignment:
    """Parses the links of a pair.

    Raises:
        T2TError: something in the line is no link.
    """
    sure, possible = set(), set()
    for text in line.split():
        match = LINK.fullmatch(text)
        if not match:
            raise T2TError(f"{text!r} is no link such as 0-1, of source word 0 and target word 1")
        link = int(match[1]), int(match[3])
        possible.add(link)
        if match[2] == SURE:
            sure.add(link)
    return Alignment(frozenset(sure), frozenset(possible))


def check_links(links: Iterable[Link], source: str, target: str) -> None:
    """Checks that the texts have the words of all links.

    Raises:
        T2TError: one has not.
    """
    counts = len(split_words(source)), len(split_words(target))
    for link in links:
        for word, count, side in zip(link, counts, ("source", "target"), strict=True):
            if word >= count:
                raise T2TError(f"link {link[0]}-{link[1]}: the {side} has {count} words, counted from 0")


def checked_lines(lines: Iterable[str], pairs: Iterable[tuple[str, str]], where: str) -> Iterator[str]:
    """Yields the alignments of pairs, one a line, each checked; errors begin with `where`.

    Raises:
        T2TError: something in a line is no link, or the pair lacks a word of it.
    """
    for number, (line, pair) in enumerate(zip(lines, pairs, strict=True), start=1):
        with at(f"{where}, line {number}"):
            check_links(parse_pharaoh(line).possible, *pair)
        yield line


def format_pharaoh(links: Iterable[Link]) -> str:
    """Formats links, sorted by target word."""
    ordered = sorted(links, key=lambda link: link[::-1])
    return " ".join(f"{source}-{target}" for source, target in ordered)


class ErrorCounts(NamedTuple):
    """Counts of links, summed over pairs, from which the alignment error rate follows.

    Attributes:
        found: links found.
        sure: sure links of the gold alignment.
        found_sure: sure links that were found.
        found_possible: links found that are possible.
    """

    found: int = 0
    sure: int = 0
    found_sure: int = 0
    found_possible: int = 0

    @classmethod
    def of(cls, links: frozenset[Link], gold: Alignment) -> ErrorCounts:
        """Counts the links of a pair."""
        return cls(len(links), len(gold.sure), len(links & gold.sure), len(links & gold.possible))

    def plus(self, other: ErrorCounts) -> ErrorCounts:
        """Returns the sums with other counts."""
        return ErrorCounts(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def error_rate(self) -> float:
        """AER (Och and Ney, 2003, section 6.1), 0 at best; 0 where there are no links at all."""
        total = self.found + self.sure
        return 1 - (self.found_sure + self.found_possible) / total if total else 0.0

    @property
    def precision(self) -> float:
        """Share of the links found that are possible."""
        return self.found_possible / max(self.found, 1)

    @property
    def recall(self) -> float:
        """Share of the sure links that were found."""
        return self.found_sure / max(self.sure, 1)


def count_links(found: Iterable[Iterable[Link]], gold: Iterable[Alignment]) -> ErrorCounts:
    """Counts the links of all pairs, in which none is twice."""
    counts = ErrorCounts()
    for links, right in zip(found, gold, strict=True):
        counts = counts.plus(ErrorCounts.of(frozenset(links), right))
    return counts


def token_links(
    links: frozenset[Link],
    vocabularies: Vocabularies,
    texts: tuple[str, str],
    ids: tuple[list[int], list[int]],
) -> list[int]:
    """Returns the links between tokens that links between words make, for `guided_alignment_weight`.

    A token of a target word without a link is linked with EOS of the source, unless the pair has no links
    at all, which then tell nothing.

    Args:
        links: of words.
        vocabularies: of source and target.
        texts: source and target.
        ids: theirs, without EOS.

    Returns:
        Target token, source token, target token, source token, and so on.
    """
    if not links:
        return []
    source_words, target_words = (
        words_of_text(token_spans(vocabulary, side), text).of_tokens
        for vocabulary, side, text in zip(vocabularies, ids, texts, strict=True)
    )
    tokens_of = defaultdict(list)  # of each source word
    for place, word in enumerate(source_words):
        tokens_of[word].append(place)
    sources_of: dict[int, list[int]] = defaultdict(list)  # of each target word
    for source, target in sorted(links):
        sources_of[target] += tokens_of[source]
    found: list[int] = []
    for place, word in enumerate(target_words):
        for source in sources_of[word] or [len(ids[0])]:
            found += place, source
    return found
