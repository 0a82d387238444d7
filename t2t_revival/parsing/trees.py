"""Penn Treebank bracketing: reading, cleaning to the constituents that EVALB compares, and drawing.

A tree is an `nltk.Tree`; a word is a tree of one string, labelled with the word's tag:

    (S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .))
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from nltk.tree import Tree
from nltk.tree.prettyprinter import TreePrettyPrinter

from t2t_revival.errors import T2TError
from t2t_revival.parsing.symbols import MAX_DEPTH, WORD
from t2t_revival.utils.files import file_lines

EMPTY = "-NONE-"  # tag of traces and other silent words
WRAPPERS = ("TOP", "ROOT", "S1")  # labels of the bracket around a sentence, which may also have none
SPACE = "_"  # replaces a space inside a word: (NN New York) is the word New_York
EMPTY_BRACKETS = re.compile(rf"\(\s*(?:{'|'.join(WRAPPERS)})?(?=[\s()])|[)\s]")
TOP = "TOP"  # the label of a tree that would otherwise have none


def read_trees(path: str | Path) -> Iterator[Tree]:
    """Yields the trees of a file, cleaned (see `cleaned`); trees without words are skipped.

    The file has Penn bracketing in UTF-8, plain or .gz: one tree per line, or each over several lines.

    Raises:
        T2TError: the file cannot be read, or is not Penn bracketing; names file and line.
    """
    bracketings = _bracketings(file_lines(Path(path)), str(path))
    trees = (cleaned(_parsed(text, f"{path}, line {number}")) for number, text in bracketings if text)
    return (tree for tree in trees if tree is not None)


def sentences_in(lines: Iterable[str], where: str) -> Iterator[tuple[int, Tree | None]]:
    """Yields a tree, or `None`, for each blank line and each bracketing of lines; see `parse_output`."""
    for number, text in _bracketings(lines, where):
        tree = parse_output(text, f"{where}, line {number}")
        yield number, None if tree is None else cleaned(tree)


def parse(text: str, where: str = "tree") -> Tree:
    """Parses the bracketing of one tree, without cleaning; errors name it `where`.

    Raises:
        T2TError: it is not the bracketing of one tree.
    """
    found = [each for _, each in _bracketings([text.replace("\n", " ")], where) if each]
    if len(found) != 1:
        raise T2TError(f"{where}: {len(found)} trees instead of one")
    return _parsed(found[0], where)


def parse_output(text: str, where: str = "tree") -> Tree | None:
    """Parses the output of a parser as `parse`; `None` for no parse: "(())", "()" or an empty line."""
    return None if not EMPTY_BRACKETS.sub("", text) else parse(text, where)


def bracketing(tree: Tree) -> str:
    """Returns the bracketing of a tree on one line."""
    return tree.pformat(margin=sys.maxsize)


def cleaned(tree: Tree) -> Tree | None:
    """Returns a copy with only the words and constituents that EVALB compares; `None` if no word remains.

    Removed are traces and constituents of nothing else, function tags and indices of labels (NP-SBJ-1
    becomes NP), the wrapper around a sentence (TOP, ROOT), and all brackets without a label. A single word,
    or several trees in a wrapper, get the label TOP, without which they would not be a tree.
    """
    parts = _kept(tree)
    while len(parts) == 1 and parts[0].label() in WRAPPERS and not is_word(parts[0]):
        parts = list(parts[0])
    if len(parts) == 1 and not is_word(parts[0]):
        return parts[0]
    return Tree(TOP, parts) if parts else None


def is_word(tree: Tree) -> bool:
    """Returns whether a tree is a word with its tag instead of a constituent."""
    return len(tree) == 1 and isinstance(tree[0], str)


def bare_label(label: str) -> str:
    """Removes function tags and indices: "NP-SBJ-1" and "NP=2" become "NP"; "-LRB-" stays."""
    return label if label.startswith("-") else re.split("[-=]", label, maxsplit=1)[0]


def escaped(word: str) -> str:
    """Returns a word as treebanks write it: "(" becomes "-LRB-", ")" becomes "-RRB-"."""
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


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


def _kept(tree: Tree) -> list[Tree]:
    """Returns the rest of a tree: nothing of a trace, the children of unlabelled brackets, or one tree."""
    if is_word(tree):
        return [] if tree.label() == EMPTY else [Tree(tree.label(), list(tree))]
    children = [kept for child in tree for kept in _kept(child)]
    label = bare_label(tree.label())
    return [Tree(label, children)] if label and children else children


def _bracketings(lines: Iterable[str], where: str) -> Iterator[tuple[int, str]]:
    """Yields the text of each tree, or of a blank line between trees, with the number of its first line."""
    parts: list[str] = []
    depth = begins = 0
    for number, line in enumerate(lines, start=1):
        start = 0
        if depth == 0 and not line.strip():
            yield number, ""
        for bracket in re.finditer(r"[()]", line):
            if depth == 0:
                _check_outside(line[start : bracket.start()], where, number)
                start, begins = bracket.start(), number
            depth += 1 if bracket[0] == "(" else -1
            if depth < 0:
                raise T2TError(f"{where}, line {number}: unbalanced brackets: a ) without its (")
            if depth == 0:
                yield begins, " ".join([*parts, line[start : bracket.end()]])
                parts, start = [], bracket.end()
        if depth:
            parts.append(line[start:])
        else:
            _check_outside(line[start:], where, number)
    if depth:
        raise T2TError(f"{where}, line {begins}: unbalanced brackets: this tree is not closed")


def _check_outside(text: str, where: str, number: int) -> None:
    if text.strip():
        raise T2TError(f"{where}, line {number}: {text.strip()[:40]!r} is outside the brackets of a tree")


def _parsed(text: str, where: str) -> Tree:
    """Parses balanced brackets; unlike NLTK's parser, takes a bracket after a backslash as a bracket."""
    open_nodes = [Tree("", [])]  # a root around the tree, and the open constituents in it
    for piece in re.finditer(r"\(\s*(?P<label>[^\s()]*)|\)|[^\s()]+", text):
        if piece["label"] is not None:
            if len(open_nodes) > MAX_DEPTH:
                raise T2TError(f"{where}: more than {MAX_DEPTH} nested brackets")
            open_nodes.append(Tree(piece["label"], []))
        elif piece[0] == ")":
            node = open_nodes.pop()
            if len(node) == 0:
                raise T2TError(f"{where}: a constituent without words: ({node.label()})")
            if len({type(child) for child in node}) > 1:
                raise T2TError(f"{where}: a word without a tag in {bracketing(node)[:60]!r}")
            is_word = isinstance(node[0], str)  # whose parts are joined
            open_nodes[-1].append(Tree(node.label(), [SPACE.join(node)]) if is_word else node)
        else:
            open_nodes[-1].append(piece[0])
    return open_nodes[0][0]
