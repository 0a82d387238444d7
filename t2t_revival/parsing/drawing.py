"""Trees for people's eyes."""

from __future__ import annotations

from nltk.tree import Tree
from nltk.tree.prettyprinter import TreePrettyPrinter

from t2t_revival.parsing.symbols import WORD
from t2t_revival.parsing.trees import is_word


def drawn(tree: Tree, width: int) -> str:
    """The tree as a drawing where that is no wider than `width` columns, else as indented brackets.

    The tag XX, which says nothing, is left out of drawings.
    """
    lines = TreePrettyPrinter(_without_tags(tree)).text(unicodelines=True).splitlines()
    if max(map(len, lines)) <= width:
        return "\n".join(line.rstrip() for line in lines)
    return tree.pformat(margin=width)


def _without_tags(tree: Tree) -> Tree | str:
    if is_word(tree):
        return tree[0] if tree.label() == WORD else tree
    return Tree(tree.label(), list(map(_without_tags, tree)))
