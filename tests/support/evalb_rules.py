"""EVALB's rules once more, in another way, and trees to try them on.

`reference` reads brackets off the text of a tree, as sets of words; `by_rules` makes trees on which a scorer
without EVALB's rules comes to its result.
"""

import random
import re

from nltk.tree import Tree

LABELS = ["S", "NP", "VP", "PP", "SBAR", "ADVP", "PRT", "NP-SBJ", "NP=2", "TOP"]
TAGS = ["NN", "VB", "DT", "-NONE-", ",", ":", "``", "''", ".", "-LRB-", "$"]
PUNCTUATION = {",", ":", "``", "''", ".", "TOP"}

Counted = tuple[int, int, int, int]  # brackets: gold, predicted, matched, crossing


def is_word(tree: Tree) -> bool:
    return isinstance(tree[0], str)


def deleted_words(gold: Tree) -> set[int]:
    """Numbers of the words that are punctuation; traces do not count as words."""
    tags = [tag for _, tag in gold.pos() if tag != "-NONE-"]
    return {number for number, tag in enumerate(tags) if tag in PUNCTUATION}


def reference(gold: Tree, predicted: Tree) -> Counted:
    """Brute force: innermost brackets are taken out of the text one by one, with the words that they have."""
    deleted = deleted_words(gold)
    right, ours = (_as_sets(" ".join(str(tree).split()), deleted) for tree in (gold, predicted))
    crossing = sum(
        any(words & span and words - span and span - words for _, span in right) for _, words in ours
    )
    rest = list(right)
    matched = 0
    for bracket in ours:
        if bracket in rest:
            rest.remove(bracket)
            matched += 1
    return len(right), len(ours), matched, crossing


def _as_sets(text: str, deleted: set[int]) -> list[tuple[str, frozenset[int]]]:
    text = re.sub(r"\(-NONE- [^()\s]+\)", "", text)
    numbers = iter(range(len(text)))
    text = re.sub(r"\([^()\s]* [^()\s]+\)", lambda _: f" <{next(numbers)}> ", text)
    found = []
    while innermost := re.search(r"\(([^()\s<]*)([^()]*)\)", text):
        label = re.split("[-=]", innermost[1])[0].replace("PRT", "ADVP")
        words = frozenset(map(int, re.findall(r"\d+", innermost[2]))) - deleted
        if words and label not in {"TOP", "ROOT", "S1", ""}:
            found.append((label, words))
        text = text[: innermost.start()] + innermost[2] + text[innermost.end() :]
    return found


def by_rules(tree: Tree, deleted: set[int]) -> Tree:
    """The tree under ROOT, changed so that a set of different brackets is left.

    Punctuation goes, and what is empty without it; function tags are cut; TOP goes; PRT becomes ADVP; equal
    brackets are numbered, and the second equals the other tree's second.
    """
    numbers = iter(range(len(tree.leaves())))

    def changed(node: Tree) -> list[Tree]:
        if is_word(node):
            return [] if next(numbers) in deleted else [Tree("XX", list(node))]
        inside = [part for child in node for part in changed(child)]
        label = node.label().partition("-")[0].partition("=")[0]
        if not inside or label == "TOP":
            return inside
        return [Tree("ADVP" if label == "PRT" else label, inside)]

    root = Tree("ROOT", changed(tree))
    _number_equals(root, {})
    return root


def _number_equals(node: Tree, above: dict[str, int]) -> None:
    """Gives equal labels in a chain of constituents over the same words numbers; above: labels so far."""
    if is_word(node):
        return
    label = node.label()
    seen = above | {label: above.get(label, 0) + 1}
    node.set_label(f"{label}#{seen[label]}")
    for child in node:
        _number_equals(child, seen if len(node) == 1 else {})


def random_tree(source: random.Random, words: int) -> Tree:
    """A tree of random shape, labels and tags, traces and punctuation among them."""
    leaves = [Tree(source.choice(TAGS), [f"w{source.randrange(5)}"]) for _ in range(words)]
    return Tree(source.choice(LABELS), _grouped(source, leaves))


def _grouped(source: random.Random, parts: list[Tree]) -> list[Tree]:
    if len(parts) == 1:
        return [Tree(source.choice(LABELS), parts)] if source.random() < 0.4 else parts
    cuts = sorted(source.sample(range(1, len(parts)), source.randint(1, min(3, len(parts) - 1))))
    pieces = [parts[a:b] for a, b in zip([0, *cuts], [*cuts, len(parts)], strict=True)]
    nodes = [_grouped(source, piece) for piece in pieces]
    return [
        part
        for node in nodes
        for part in ([Tree(source.choice(LABELS), node)] if source.random() < 0.7 else node)
    ]


def perturbed(tree: Tree, source: random.Random, changes: int) -> Tree:
    """A copy with constituents relabelled, removed, added and moved; the words stay in their order."""
    copy = tree.copy(deep=True)
    for _ in range(changes):
        source.choice([_relabel, _remove, _add, _raise_last, _lower_next])(copy, source)
    return copy


def untagged(tree: Tree) -> Tree:
    """A copy without traces whose words are all XX, as a model that learns no tags has it."""
    parts = (
        [untagged(child) for child in tree if child.label() != "-NONE-"] if not is_word(tree) else list(tree)
    )
    if is_word(tree):
        return Tree("XX", parts)
    return Tree(tree.label(), [part for part in parts if len(part)])


def _constituents(tree: Tree) -> list[Tree]:
    return [node for node in tree.subtrees() if not is_word(node)]


def _relabel(tree: Tree, source: random.Random) -> None:
    source.choice(_constituents(tree)).set_label(source.choice(LABELS))


def _remove(tree: Tree, source: random.Random) -> None:
    parent = source.choice(_constituents(tree))
    place = source.randrange(len(parent))
    if not is_word(parent[place]):
        parent[place : place + 1] = list(parent[place])


def _add(tree: Tree, source: random.Random) -> None:
    parent = source.choice(_constituents(tree))
    start = source.randrange(len(parent))
    end = source.randint(start + 1, len(parent))
    label = source.choice([parent.label(), *LABELS])  # its parent's own: perhaps the same bracket twice
    parent[start:end] = [Tree(label, parent[start:end])]


def _raise_last(tree: Tree, source: random.Random) -> None:
    parent = source.choice(_constituents(tree))
    place = source.randrange(len(parent))
    child = parent[place]
    if not is_word(child) and len(child) > 1:
        parent.insert(place + 1, child.pop())


def _lower_next(tree: Tree, source: random.Random) -> None:
    parent = source.choice(_constituents(tree))
    place = source.randrange(len(parent))
    if not is_word(parent[place]) and place + 1 < len(parent):
        parent[place].append(parent.pop(place + 1))
