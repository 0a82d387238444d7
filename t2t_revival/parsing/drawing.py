"""Drawings of trees for the terminal."""

from __future__ import annotations

from nltk.tree import Tree
from nltk.tree.prettyprinter import TreePrettyPrinter

from t2t_revival.parsing.symbols import WORD
from t2t_revival.parsing.trees import is_word


def draw_tree(tree: Tree, width: int) -> str:
    """Draws a tree; one that is wider than `width` columns is returned as indented brackets.

    The placeholder tag XX is omitted from drawings.
    """
    words: list[str] = []
    # Leaves are indices of words, since NLTK would draw words beside constituents before all others.
    indexed = Tree(tree.label(), [_indexed(child, words) for child in tree])
    lines = TreePrettyPrinter(indexed, words).text(unicodelines=True).splitlines()
    if max(map(len, lines)) <= width:
        return "\n".join(line.rstrip() for line in lines)
    return tree.pformat(margin=width)


def _indexed(tree: Tree | str, words: list[str]) -> Tree | int:
    """Replaces words by their indices, appends them to `words`, and removes the placeholder tag."""
    if isinstance(tree, str):
        words.append(tree)
        return len(words) - 1
    if not is_word(tree):
        return Tree(tree.label(), [_indexed(child, words) for child in tree])
    index = _indexed(tree[0], words)
    return index if tree.label() == WORD else Tree(tree.label(), [index])
