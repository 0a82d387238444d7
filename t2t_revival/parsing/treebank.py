"""Where trees come from: `--data_source` of the parsing problems.

The Penn Treebank as the LDC gives it, a folder with `train.trees dev.trees [test.trees]`, or the built-in
grammar; and, for training, trees that a parser made (section 6.3, semi-supervised).
"""

from __future__ import annotations

import abc
import glob
import json
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from nltk.tree import Tree

from t2t_revival.data.sources import SPLITS, Source
from t2t_revival.errors import T2TError
from t2t_revival.parsing.linear import labels, linearise, sentence
from t2t_revival.parsing.symbols import CLOSE, OPEN, WORD
from t2t_revival.parsing.trees import parse, read_trees

CHOICES = (
    "--data_source takes a Penn Treebank folder (with wsj/02 to wsj/23), a folder with train.trees dev.trees "
    "[test.trees], or sample (built in)"
)
SECTIONS = {
    "train": range(2, 22),
    "dev": range(22, 23),
    "test": range(23, 24),
}  # of the WSJ, as [37] has them
SUFFIXES = (".mrg", ".mrg.gz")
TREES = ".trees"
Pair = tuple[str, str]  # words, linearised tree


class TreebankSource(Source):
    """Sentences with their trees; a pair is (words, linearised tree)."""

    source_lang, target_lang = "words", "trees"

    @abc.abstractmethod
    def _read(self, split: str) -> Iterator[Tree]:
        """The trees of a split."""

    def trees(self, split: str) -> Iterator[Tree]:
        """The trees of dev or test.

        Raises:
            T2TError: they cannot be read.
        """
        return self._read(split)

    def count(self, split: str) -> int:
        """See `Source.count`."""
        return len(self._all(split))

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        """See `Source.pairs`; each token of a tree has a space behind it, the last one too."""
        yield from self._all(split)[start:stop]

    def labels(self) -> set[str]:
        """Labels of all constituents of the train split."""
        return {label for _, tree in self._all("train") for label in labels(tree)}

    def _all(self, split: str) -> list[Pair]:
        """Held in memory as text, which takes a fiftieth of what trees take."""
        if split not in self._found:
            self._found[split] = list(self._read_pairs(split))
        if not self._found[split]:
            raise T2TError(f"--data_source={self.name}: no trees in its {split} split")
        return self._found[split]

    def _read_pairs(self, split: str) -> Iterator[Pair]:
        return map(pair_of, self._read(split))

    @cached_property
    def _found(self) -> dict[str, list[Pair]]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_found"}


def pair_of(tree: Tree) -> Pair:
    """Words and tokens, each token with a space behind it."""
    return sentence(tree), f"{linearise(tree)} "


def with_labels(pair: Pair, known: set[str]) -> Pair | None:
    """A tree without the constituents of other labels, whose children stand in their places.

    Args:
        pair: words and tokens.
        known: labels that may stay.

    Returns:
        None where what is left is no tree: the outermost went, and had several children.
    """
    everything = pair[1].split()
    tokens = [token for token in everything if token == WORD or token[1:] in known]
    if len(tokens) == len(everything):
        return pair
    depth = 0
    for behind, token in enumerate(tokens, start=1):
        depth += token.startswith(OPEN) - token.startswith(CLOSE)
        if depth == 0 and (token == WORD or behind < len(tokens)):
            return None
    return (pair[0], "".join(f"{token} " for token in tokens)) if tokens else None


def treebank(name: str) -> TreebankSource:
    """The treebank that a `--data_source` names.

    Raises:
        T2TError: there is no such folder, or it is no treebank.
    """
    if not name:
        raise T2TError(f"--data_source is missing, and the Penn Treebank is not free: {CHOICES}")
    if name == "sample":
        return SampleTrees()
    folder = Path(name).expanduser().resolve()
    if not folder.is_dir():
        raise T2TError(f"--data_source={name}: no such folder; {CHOICES}")
    if (folder / "wsj").is_dir():
        return PennTreebank(folder, folder / "wsj")
    return PennTreebank(folder, folder) if (folder / "02").is_dir() else TreesFolder(folder)


class SampleTrees(TreebankSource):
    """The trees of the built-in grammar."""

    kind = name = "sample"

    def splits(self) -> tuple[str, ...]:
        """See `Source.splits`."""
        return SPLITS

    def _read(self, split: str) -> Iterator[Tree]:
        return iter(_sample(split))


@lru_cache(maxsize=len(SPLITS))
def _sample(split: str) -> list[Tree]:
    from t2t_revival.data.grammar import generate

    return [parse(sample.tree) for sample in generate(split)]


class PennTreebank(TreebankSource):
    """Wall Street Journal sections 02-21 to train, 22 as dev, 23 as test.

    Args:
        folder: what was asked for.
        sections: the folder of the sections' folders.
    """

    kind = "folder"

    def __init__(self, folder: Path, sections: Path) -> None:
        self.name = str(folder)
        self._sections = sections

    def splits(self) -> tuple[str, ...]:
        """See `Source.splits`."""
        return SPLITS

    def _read(self, split: str) -> Iterator[Tree]:
        for section in SECTIONS[split]:
            for file in self._files(self._sections / f"{section:02}"):
                yield from read_trees(file)

    @staticmethod
    def _files(folder: Path) -> list[Path]:
        files = sorted(file for file in folder.glob("*") if file.name.endswith(SUFFIXES))
        if not files:
            raise T2TError(f"{folder}: no .mrg files; sections 02 to 21, 22 and 23 are needed; {CHOICES}")
        return files


class TreesFolder(TreebankSource):
    """A folder with train.trees, dev.trees and, where there is one, test.trees; plain or .gz."""

    kind = "folder"

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder

    def splits(self) -> tuple[str, ...]:
        """See `Source.splits`."""
        return tuple(split for split in SPLITS if split != "test" or self._file(split).exists())

    def _read(self, split: str) -> Iterator[Tree]:
        file = self._file(split)
        if not file.exists():
            raise T2TError(f"{file}: no such file, nor {file.name}.gz; {CHOICES}")
        return read_trees(file)

    def _file(self, split: str) -> Path:
        plain = self._folder / f"{split}{TREES}"
        packed = plain.with_name(f"{plain.name}.gz")
        return packed if packed.exists() and not plain.exists() else plain


class MixedTrees(TreebankSource):
    """A treebank whose train split is mixed with trees that a parser made.

    Args:
        gold: the treebank.
        auto_trees: files of parsed sentences, or patterns such as "parsed/*.trees". Of their labels, only
            those of the treebank are learned; see `with_labels`.
        gold_share: of the training examples, below 1; gold trees come again and again until they make up
            this share. 0: each comes once.

    Raises:
        T2TError: gold_share is no share.
    """

    def __init__(self, gold: TreebankSource, auto_trees: Sequence[str], gold_share: float) -> None:
        if not 0 <= gold_share < 1:
            raise T2TError(f"--gold_share={gold_share}: must be at least 0 and below 1")
        self._gold, self._share = gold, gold_share
        self._patterns = [str(Path(pattern).expanduser().absolute()) for pattern in auto_trees]
        self.kind = gold.kind
        self.name = mixed_name(gold.name, self._patterns, gold_share)

    def splits(self) -> tuple[str, ...]:
        """See `Source.splits`."""
        return self._gold.splits()

    def _read(self, split: str) -> Iterator[Tree]:
        return self._gold.trees(split)

    def _read_pairs(self, split: str) -> Iterator[Pair]:
        gold = self._gold.pairs(split, 0, self._gold.count(split))
        if split != "train":
            return gold
        found = [pair_of(tree) for file in self._files() for tree in read_trees(file)]
        known = self._gold.labels()
        parsed = [pair for pair in (with_labels(pair, known) for pair in found) if pair]
        if not parsed:
            fault = "none of its trees has the treebank's labels" if found else "no trees there"
            raise T2TError(f"--auto_trees={','.join(self._patterns)}: {fault}")
        return _interleaved(list(gold), parsed, self._share)

    def _files(self) -> Iterator[str]:
        for pattern in self._patterns:
            files = [pattern] if Path(pattern).is_file() else sorted(glob.glob(pattern))
            if not files:
                raise T2TError(f"--auto_trees={pattern}: no such file")
            yield from files


def _interleaved(gold: Sequence[Pair], parsed: Sequence[Pair], gold_share: float) -> Iterator[Pair]:
    """Both, evenly mixed, since a shard is a stretch of them."""
    natural = len(gold) / (len(gold) + len(parsed))
    if gold_share and gold_share < natural:
        raise T2TError(
            f"--gold_share={gold_share}: {len(gold):,} gold trees beside {len(parsed):,} parsed ones are a "
            f"share of {natural:.2f} already; give more than that, or 0 for each tree once"
        )
    times = round(len(parsed) * gold_share / (1 - gold_share)) if gold_share else len(gold)
    total = times + len(parsed)
    for number in range(total):
        before, after = (n * len(parsed) // total for n in (number, number + 1))
        yield parsed[before] if after > before else gold[(number - before) % len(gold)]


AUTO, SHARE = " auto_trees=", " gold_share="  # parts of a mixed treebank's name


def mixed_name(gold: str, auto_trees: Sequence[str], gold_share: float) -> str:
    """What `mixed` makes a mixed treebank from."""
    return f"{gold}{AUTO}{json.dumps(list(auto_trees))}{SHARE}{gold_share}"


def mixed(name: str) -> MixedTrees:
    """The mixed treebank of that name.

    Raises:
        T2TError: no trees of a parser are named.
    """
    gold, auto, rest = name.partition(AUTO)
    files, _, share = rest.partition(SHARE)
    if not auto:
        raise T2TError("--auto_trees is missing: files of parsed sentences, joined by commas")
    return MixedTrees(treebank(gold), json.loads(files), float(share))
