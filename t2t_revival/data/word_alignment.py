"""Word alignments: which words of a target translate which words of a source.

Words are what stands between spaces and tabs, counted from 0; a no-break space is part of a word. A line of a
file, one for each pair, has the links in Pharaoh's format, "0-0 1-2": source word, target word. In gold
alignments, a link "1?2" or "1p2" is possible, where one with "-" is sure.
"""

from __future__ import annotations

import re
import tempfile
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.errors import T2TError
from t2t_revival.utils.blank import is_blank

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder


Link = tuple[int, int]  # source word, target word
LINK = re.compile(r"(\d+)([-?p])(\d+)", re.ASCII)
SURE = "-"
NOT_INSTALLED = "word alignments need the package eflomal: pip install eflomal"
WHITE_SPACE = re.compile(r"\s")
AROUND = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
SPACE = "\u2581"  # SentencePiece's piece of a space alone
WORD = re.compile(r"[^ \t]+")  # as aligners in C++ read files: a no-break space is part of a word


class Span(NamedTuple):
    """A part of a text by its first character and the one after its last."""

    start: int
    end: int


class TokenSpans(NamedTuple):
    """The text of some tokens, and where it has each of them.

    Attributes:
        text: of all tokens.
        spans: of each token, one after the other; white space belongs to them, and one that has no text of
            its own, such as the first byte of a character, is empty.
        opens_word: of each token, whether it is the mark of a space before the next word.
    """

    text: str
    spans: list[Span]
    opens_word: list[bool]


def token_spans(vocabulary: TextEncoder, ids: Sequence[int]) -> TokenSpans:
    """Returns the text of ids, without EOS, and their places in it."""
    text = vocabulary.decode(ids)
    pieces = [vocabulary.pieces[token] for token in ids]
    joined = "".join(pieces).replace(SPACE, " ")
    if joined in (text, f" {text}"):  # SentencePiece's pieces in a row; the first may have a space before it
        start = len(joined) - len(text)
        ends = [max(end - start, 0) for end in accumulate(map(len, pieces))]
    else:
        ends = [_common_length(vocabulary.decode(ids[: n + 1]), text) for n in range(len(ids))]
    bounds = [0, *accumulate(ends, max)]
    return TokenSpans(text, [Span(*pair) for pair in pairwise(bounds)], [piece == SPACE for piece in pieces])


def words_of_tokens(tokens: TokenSpans, words: Sequence[Span]) -> list[int]:
    """Returns the number of the word that each token is part of; there is at least one word.

    A token belongs to the word in which its text ends; one without text of its own to the word before, or,
    as SentencePiece's mark of a space, to the next.
    """
    ends = [word.end for word in words]
    last = [
        span.end if opens else len(tokens.text[: span.end].rstrip(" \t")) - 1
        for span, opens in zip(tokens.spans, tokens.opens_word, strict=True)
    ]
    found = [min(bisect_right(ends, max(character, 0)), len(words) - 1) for character in last]
    return [*accumulate(found, max)]


def split_words(text: str) -> list[Span]:
    """Returns what stands between spaces and tabs, which are the borders of words everywhere."""
    return [Span(*match.span()) for match in WORD.finditer(text)]


def match_words(words: Sequence[str], others: Sequence[str]) -> list[int]:
    """Returns for each of `words` the number of the one of `others` that it is, or is part of.

    Both are words of one text, which a vocabulary has normalised on one side: characters may have changed,
    and white space may have come or gone.
    """
    sizes, lengths = list(map(_normal_length, words)), list(map(_normal_length, others))
    if list(map(bool, sizes)) == list(map(bool, lengths)):  # none has vanished
        return list(range(len(words)))
    ends = list(accumulate(lengths))
    middles = [end - size / 2 for end, size in zip(accumulate(sizes), sizes, strict=True)]
    return [min(bisect_right(ends, middle), max(len(others) - 1, 0)) for middle in middles]


def _normal_length(word: str) -> int:
    """Returns the number of visible characters of a normalised word."""
    return sum(not is_blank(character) for character in unicodedata.normalize("NFKC", word))


def _common_length(one: str, other: str) -> int:
    """Returns the number of characters in which two texts begin alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


class Alignment(NamedTuple):
    """Links of a pair: the sure ones, and the possible ones, which are all; none is twice in either."""

    sure: frozenset[Link]
    possible: frozenset[Link]


def parse_pharaoh(line: str) -> Alignment:
    """Parses the links of a pair; raises T2TError if something in the line is no link."""
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
    """Checks that the texts have the words of all links."""
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
        try:
            check_links(parse_pharaoh(line).possible, *pair)
        except T2TError as error:
            raise T2TError(f"{where}, line {number}: {error}") from error
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


def words_of(vocabulary: TextEncoder, ids: Sequence[int], text: str) -> list[int]:
    """Returns the number of the word of a text that each id is part of; empty without words.

    Args:
        vocabulary: of the ids.
        ids: of the text or of its beginning, without EOS.
        text: as people see it.
    """
    return words_of_spans(token_spans(vocabulary, ids), text)


def words_of_spans(tokens: TokenSpans, text: str) -> list[int]:
    """Returns the number of the word of a text that each of its tokens is part of; empty without words."""
    own = split_words(tokens.text)
    if not own:
        return []
    theirs = [text[slice(*span)] for span in split_words(text)]
    numbers = match_words([tokens.text[slice(*span)] for span in own], theirs)
    return [numbers[word] for word in words_of_tokens(tokens, own)]


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
        words_of(vocabulary, side, text)
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


def check_installed() -> None:
    """Raises T2TError if eflomal is not installed."""
    if find_spec("eflomal") is None:
        raise T2TError(NOT_INSTALLED)


def align_corpus(pairs: Iterable[tuple[str, str]], folder: Path) -> Iterator[str]:
    """Yields the links that eflomal learns from the corpus itself; a pair with an empty side has none.

    Reference: Östling and Tiedemann, 2016, "Efficient Word Alignment with Markov Chain Monte Carlo".

    Args:
        pairs: source and target texts. Case and the punctuation around words are not looked at.
        folder: for temporary files.

    Raises:
        T2TError: eflomal is not installed, or fails.
    """
    try:
        from eflomal import Aligner
    except ImportError as error:
        raise T2TError(NOT_INSTALLED) from error

    with tempfile.TemporaryDirectory(dir=folder) as place:
        names = [Path(place) / name for name in ("source", "target", "forward", "reverse")]
        with names[0].open("w", encoding="utf-8") as source, names[1].open("w", encoding="utf-8") as target:
            for pair in pairs:
                for file, text in zip((source, target), pair, strict=True):
                    file.write(" ".join(_bare(text[slice(*word)]) for word in split_words(text)) + "\n")
        try:
            with names[0].open(encoding="utf-8") as source, names[1].open(encoding="utf-8") as target:
                links = {"links_filename_fwd": str(names[2]), "links_filename_rev": str(names[3])}
                Aligner().align(source, target, **links, quiet=True)
        except (OSError, RuntimeError) as error:
            raise T2TError(f"eflomal cannot align the corpus: {error}") from error
        with names[2].open() as forward, names[3].open() as reverse:
            for lines in zip(forward, reverse, strict=True):
                yield format_pharaoh(symmetrize(*(parse_pharaoh(line).sure for line in lines)))


def symmetrize(forward: frozenset[Link], reverse: frozenset[Link]) -> frozenset[Link]:
    """Combines the links of both directions: grow-diag-final-and (Koehn et al., 2005).

    It begins with the links that both have, adds neighbours of links that one has and that align a word which
    has no link yet, as long as there are any, and at last those of words without links on both sides.
    """
    links, union = set(forward & reverse), forward | reverse
    sources, targets = {source for source, _ in links}, {target for _, target in links}

    def add(link: Link) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    grown = True
    while grown:
        grown = False
        for source, target in sorted(links):
            for i, j in AROUND:
                link = source + i, target + j
                is_new = link in union and link not in links
                if is_new and (link[0] not in sources or link[1] not in targets):
                    add(link)
                    grown = True
    for direction in (forward, reverse):
        for link in sorted(direction):
            if link[0] not in sources and link[1] not in targets:
                add(link)
    return frozenset(links)


def _bare(word: str) -> str:
    """Returns a word in lower case, without the punctuation at its ends unless it has nothing else.

    White space in it, at which eflomal would cut it, is a sign.
    """
    word = WHITE_SPACE.sub("_", word)
    start, end = 0, len(word)
    while start < end and _is_mark(word[start]):
        start += 1
    while end > start and _is_mark(word[end - 1]):
        end -= 1
    return (word[start:end] or word).lower()


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("P")
