"""A tree as a sequence of tokens, as in "Grammar as a Foreign Language" (Vinyals et al., 2015), and back.

The sentence `The dog sleeps .` with the tree

    (S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .))

is learned as

    source  The dog sleeps .
    target  (S (NP XX XX )NP (VP XX )VP XX )S

A constituent is an opening and a closing token, which both name its label; every word is XX, whatever its
tag. Tokens are separated by spaces. The inverse gives every word the tag XX, unless tags are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nltk.tokenize import NLTKWordTokenizer
from nltk.tree import Tree

from t2t_revival.parsing.symbols import CLOSE, MOST_OPEN, OPEN, WORD
from t2t_revival.parsing.trees import TOP, escaped, is_word

QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")  # of print, which the tokeniser does not know
CLOSING_QUOTES = re.compile(
    r"(?<=\s)''(?=\s|$)"
)  # of text that is tokenised; the tokeniser would open with them
CLOSING = "\ue001"


def sentence(tree: Tree) -> str:
    """The words of a tree, separated by spaces."""
    return " ".join(tree.leaves())


def words(text: str) -> list[str]:
    """The words of a sentence that has spaces between them; brackets as treebanks write them."""
    return [escaped(word) for word in text.split()]


def tokens(text: str) -> list[str]:
    """Words and marks of a sentence as people write it: "He didn't." has He, did, n't and the full stop."""
    plain = CLOSING_QUOTES.sub(CLOSING, text.translate(QUOTES))
    found = NLTKWordTokenizer().tokenize(plain, convert_parentheses=True)
    return [word for token in found for word in words(token.replace(CLOSING, "''"))]


def linearise(tree: Tree) -> str:
    """The tokens of a tree, separated by spaces."""
    return " ".join(_tokens(tree))


def labels(text: str) -> set[str]:
    """Labels of all constituents of a linearised tree."""
    return {token.removeprefix(OPEN) for token in text.split() if token.startswith(OPEN)}


def delinearise(text: str, words: Sequence[str], tags: Sequence[str] | None = None) -> tuple[Tree, bool]:
    """The tree that a sequence of tokens stands for, over exactly these words.

    What is not well-formed is repaired: a closing token closes down to the innermost constituent of its
    label, or is ignored where there is none; constituents without words go, and those so deep that the tree
    could not be read again (`MAX_DEPTH`); words too many are ignored, and those that are missing end the
    innermost constituent that is open; what is open at the end is closed; several trees, or none, get a TOP.

    Args:
        text: tokens, separated by spaces.
        words: of the sentence, at least one.
        tags: of the words, as many; None: all XX.

    Returns:
        The tree, and whether it was repaired.

    Raises:
        ValueError: there are no words, or not as many tags.
    """
    if not words:
        raise ValueError("a tree needs words")
    if tags is None:
        tags = [WORD] * len(words)
    builder = _Builder([Tree(tag, [word]) for tag, word in zip(tags, words, strict=True)])
    for token in text.split():
        builder.add(token)
    return builder.finish()


class _Builder:
    """Builds a tree token by token."""

    def __init__(self, leaves: list[Tree]) -> None:
        self._leaves = iter(leaves)
        self._left = len(leaves)
        self._root = Tree(TOP, [])
        self._open = [self._root]  # the root, and what is open in it, from the outside to the inside
        self._repaired = False

    def add(self, token: str) -> None:
        """One token further."""
        bracket, label = token[:1], token[1:]
        if token == WORD:
            self._add_word()
        elif bracket == OPEN and _is_label(label) and len(self._open) <= MOST_OPEN:
            self._open.append(Tree(label, []))
        elif bracket == CLOSE:
            self._close_down_to(label)
        else:
            self._repaired = True

    def finish(self) -> tuple[Tree, bool]:
        """The tree, and whether it was repaired."""
        self._repaired |= self._left > 0 or len(self._open) > 1
        self._open[-1].extend(self._leaves)
        while len(self._open) > 1:
            self._close()
        if len(self._root) == 1 and not is_word(self._root[0]):
            return self._root[0], self._repaired
        return self._root, True

    def _add_word(self) -> None:
        leaf = next(self._leaves, None)
        if leaf is None:
            self._repaired = True
            return
        self._left -= 1
        self._open[-1].append(leaf)

    def _close_down_to(self, label: str) -> None:
        if label not in (node.label() for node in self._open[1:]):
            self._repaired = True
            return
        while self._open[-1].label() != label:
            self._repaired = True
            self._close()
        self._close()

    def _close(self) -> None:
        node = self._open.pop()
        if len(node):
            self._open[-1].append(node)
        else:
            self._repaired = True


def _is_label(text: str) -> bool:
    return text != "" and OPEN not in text and CLOSE not in text


def _tokens(tree: Tree) -> Iterator[str]:
    if is_word(tree):
        yield WORD
        return
    yield OPEN + tree.label()
    for child in tree:
        yield from _tokens(child)
    yield CLOSE + tree.label()
