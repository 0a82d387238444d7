"""Places of tokens in the text that they make, and the words that they are part of."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.utils.blank import is_blank

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder

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
