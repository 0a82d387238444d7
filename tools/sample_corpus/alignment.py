"""Words that know the parts of the meaning that they express, and the word alignments that follow.

A part is a role in an object of the meaning: (a phrase, "determiner"), (a clause, "verb"). A word also
expresses the parts for which its language has no other word: of "does wait for", "attend" expresses "tense",
"verb" and "particle".
"""

from __future__ import annotations

from collections.abc import Iterable


class Word(str):
    """A word with the parts of the meaning that it expresses: objects, each before its roles."""

    __slots__ = ("parts",)
    parts: tuple[object, ...]


def word(text: str, *parts: object) -> Word:
    """Returns a word for parts of the meaning, such as `word("sees", clause, "tense", "verb")`."""
    made = Word(text)
    made.parts = parts
    return made


def merged(text: str, *words: Word) -> Word:
    """Returns a word for all that the given words express: "zum" for "zu" and "dem"."""
    return word(text, *[part for given in words for part in given.parts])


def time_words(text: str, numbers: str, clause: object) -> list[Word]:
    """Returns the words of a time; the roles are the `numbers` of the English words that each translates."""
    return [word(item, clause, *roles) for item, roles in zip(text.split(), numbers.split(), strict=False)]


def pharaoh(source: tuple[str, Iterable[Word]], target: tuple[str, Iterable[Word]]) -> str:
    """Returns the pairs of tokens that share a part, "0-0 1-2 ...", for two texts with their words."""
    expressed = _expressed_by_tokens(*target)
    return " ".join(
        f"{index}-{other}"
        for index, parts in enumerate(_expressed_by_tokens(*source))
        for other, others in enumerate(expressed)
        if parts & others
    )


def _expressed_by_tokens(text: str, words: Iterable[Word]) -> list[set[tuple[int, str]]]:
    """Returns the parts that each token of a text expresses, which has the words in order."""
    tokens: list[set[tuple[int, str]]] = [set() for _ in text.split()]
    lower, position = text.lower(), 0
    for item in words:
        if item.parts:
            position = lower.index(item.lower(), position)
            tokens[text.count(" ", 0, position)].update(_expressed(item))
            position += len(item)
    return tokens


def _expressed(item: Word) -> Iterable[tuple[int, str]]:
    identity = 0
    for part in item.parts:
        if isinstance(part, str):
            yield identity, part
        else:
            identity = id(part)
