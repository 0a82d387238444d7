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
    words: list[str] = []
    # By places, since NLTK would draw words beside constituents before all others.
    numbered = Tree(tree.label(), [_numbered(child, words) for child in tree])
    lines = TreePrettyPrinter(numbered, words).text(unicodelines=True).splitlines()
    if max(map(len, lines)) <= width:
        return "\n".join(line.rstrip() for line in lines)
    return tree.pformat(margin=width)


def _numbered(tree: Tree | str, words: list[str]) -> Tree | int:
    """The tree over the places of its words, which are added to `words`; without tags that say nothing."""
    if isinstance(tree, str):
        words.append(tree)
        return len(words) - 1
    if not is_word(tree):
        return Tree(tree.label(), [_numbered(child, words) for child in tree])
    place = _numbered(tree[0], words)
    return place if tree.label() == WORD else Tree(tree.label(), [place])
