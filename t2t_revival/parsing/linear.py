"""Linearisation of trees, as in "Grammar as a Foreign Language" (Vinyals et al., 2015), and its inverse.

The sentence `The dog sleeps .` with the tree

    (S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .))

is learned as

    source  The dog sleeps .
    target  (S (NP XX XX )NP (VP XX )VP XX )S

A constituent is an opening and a closing token, both with its label; every word is XX, whatever its tag.
Tokens are separated by spaces. The inverse gives every word the tag XX.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nltk.tokenize import NLTKWordTokenizer
from nltk.tree import Tree

from t2t_revival.parsing.symbols import CLOSE, MOST_OPEN, OPEN, WORD
from t2t_revival.parsing.trees import TOP, escaped, is_word

QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")  # typographic ones, unknown to the tokeniser
CLOSING_QUOTES = re.compile(r"(?<=\s)''(?=\s|$)")  # of tokenised text; taken for opening ones otherwise
CLOSING = "\ue001"


def sentence(tree: Tree) -> str:
    """Returns the words of a tree, separated by spaces."""
    return " ".join(tree.leaves())


def words(text: str) -> list[str]:
    """Splits a sentence at its spaces; writes brackets as treebanks do."""
    return [escaped(word) for word in text.split()]


def tokens(text: str) -> list[str]:
    """Tokenises an ordinary sentence: "He didn't." has the tokens He, did, n't and the full stop."""
    plain = CLOSING_QUOTES.sub(CLOSING, text.translate(QUOTES))
    found = NLTKWordTokenizer().tokenize(plain, convert_parentheses=True)
    return [word for token in found for word in words(token.replace(CLOSING, "''"))]


def linearise(tree: Tree) -> str:
    """Returns the tokens of a tree, separated by spaces."""
    return " ".join(_tokens(tree))


def labels(text: str) -> set[str]:
    """Returns the labels of all constituents of a linearised tree."""
    return {token.removeprefix(OPEN) for token in text.split() if token.startswith(OPEN)}


def delinearise(text: str, words: Sequence[str]) -> tuple[Tree, bool]:
    """Returns the tree of a sequence of tokens over exactly these words.

    Malformed sequences are repaired. A closing token closes all constituents down to the innermost one of
    its label, or is ignored if there is none. Constituents without words are removed, and those nested deeper
    than `MAX_DEPTH`, which could not be read again. Surplus words are ignored; missing ones are appended to
    the innermost open constituent. Constituents that are open at the end are closed. Several trees, or none,
    are put under TOP.

    The tokens are separated by spaces; every word has the tag XX.

    Returns:
        The tree, and whether it was repaired.

    Raises:
        ValueError: there are no words.
    """
    if not words:
        raise ValueError("a tree needs words")
    builder = _Builder([Tree(WORD, [word]) for word in words])
    for token in text.split():
        builder.add(token)
    return builder.finish()


class _Builder:
    """Builds a tree token by token."""

    def __init__(self, leaves: list[Tree]) -> None:
        self._leaves = iter(leaves)
        self._num_left = len(leaves)
        self._root = Tree(TOP, [])
        self._open = [self._root]  # the root and the open constituents, outermost first
        self._repaired = False

    def add(self, token: str) -> None:
        bracket, label = token[:1], token[1:]
        if token == WORD:
            self._add_word()
        elif bracket == OPEN and label and not {OPEN, CLOSE} & set(label) and len(self._open) <= MOST_OPEN:
            self._open.append(Tree(label, []))
        elif bracket == CLOSE:
            self._close_down_to(label)
        else:
            self._repaired = True

    def finish(self) -> tuple[Tree, bool]:
        """Returns the tree, and whether it was repaired."""
        self._repaired |= self._num_left > 0 or len(self._open) > 1
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
        self._num_left -= 1
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


def _tokens(tree: Tree) -> Iterator[str]:
    if is_word(tree):
        yield WORD
        return
    yield OPEN + tree.label()
    for child in tree:
        yield from _tokens(child)
    yield CLOSE + tree.label()
