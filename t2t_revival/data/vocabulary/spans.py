"""Places of tokens in the text that they make, and the words that they are part of."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.utils.texts import is_blank

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder

SPACE = "\u2581"  # SentencePiece's piece of a space alone
WORD = re.compile(r"[^ \t]+")  # as aligners in C++ read files: a no-break space is part of a word
# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Chinese.
UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)


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

    @classmethod
    def of(cls, text: str, pieces: Sequence[str], ends: Iterable[int]) -> TokenSpans:
        """Returns places by the names of tokens, and by where each ends in the text."""
        bounds = [0, *accumulate(ends, max)]
        return cls(text, [Span(*pair) for pair in pairwise(bounds)], [piece == SPACE for piece in pieces])


class Words(NamedTuple):
    """The words of a text, and the number of the word of each of its tokens; empty without words."""

    spans: list[Span]
    of_tokens: list[int]


def token_spans(vocabulary: TextEncoder, ids: Sequence[int]) -> TokenSpans:
    """Returns the text of ids, without EOS, and their places in it."""
    text = vocabulary.decode(ids)
    pieces = [vocabulary.pieces[token] for token in ids]
    ends = _ends_of_pieces(pieces, text)
    if ends is None:
        ends = [_common_length(vocabulary.decode(ids[: n + 1]), text) for n in range(len(ids))]
    return TokenSpans.of(text, pieces, ends)


def _ends_of_pieces(pieces: Sequence[str], text: str) -> list[int] | None:
    """Returns where each piece ends, if the text is SentencePiece's pieces in a row; else `None`."""
    joined = "".join(pieces).replace(SPACE, " ")
    start = len(joined) - len(text)  # of a text, whose first piece may have a space before it
    if joined not in (text, f" {text}"):
        return None
    return [max(end - start, 0) for end in accumulate(map(len, pieces))]


def words_of_tokens(tokens: TokenSpans, words: Sequence[Span]) -> list[int]:
    """Returns the number of the word that each token is part of; empty without words.

    A token belongs to the word in which its text ends; one without text of its own to the word before, or,
    as SentencePiece's mark of a space, to the next.
    """
    if not words:
        return []
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


def words_of_text(tokens: TokenSpans, text: str) -> Words:
    """Returns the words of a text that people read, and those of tokens, which may make a normalised form."""
    spans, of_form = split_words(text), split_words(tokens.text)
    if not spans:
        return Words([], [])
    forms = [tokens.text[slice(*span)] for span in of_form]
    numbers = match_words(forms, [text[slice(*span)] for span in spans])
    return Words(spans, [numbers[word] for word in words_of_tokens(tokens, of_form)])


def words_at_tokens(tokens: TokenSpans, text: str) -> Words:
    """Returns the words of the text of tokens; in scripts without spaces, each token is one."""
    ends = {span.end for span in tokens.spans}
    spans: list[Span] = []
    for start, end in split_words(text):
        inside = range(start + 1, end)
        cuts = [cut for cut in inside if cut in ends and UNSPACED.search(text, cut - 1, cut + 1)]
        spans += map(Span._make, pairwise([start, *cuts, end]))
    return Words(spans, words_of_tokens(tokens, spans))


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
