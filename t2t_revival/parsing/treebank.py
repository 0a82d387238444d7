"""Sources of trees: `--data_source` of the parsing problems.

They are the Penn Treebank as distributed by the LDC, a folder with `train.trees dev.trees [test.trees]`, and
the built-in sample. `MixedTrees` adds trees of another parser for training (section 6.3, semi-supervised).
"""

from __future__ import annotations

import abc
import glob
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from nltk.tree import Tree

from t2t_revival import sample_corpus
from t2t_revival.data.base_source import plain_or_packed
from t2t_revival.data.sources import SPLITS, Source
from t2t_revival.errors import T2TError
from t2t_revival.parsing.linear import labels, linearise, sentence
from t2t_revival.parsing.symbols import CLOSE, OPEN, WORD
from t2t_revival.parsing.trees import parse, read_trees

CHOICES = (
    "--data_source takes a Penn Treebank folder (with wsj/02 to wsj/23), a folder with train.trees dev.trees "
    "[test.trees], or sample (built in)"
)
SECTIONS = {"train": range(2, 22), "dev": range(22, 23), "test": range(23, 24)}  # of the WSJ, as in [37]
SUFFIXES = (".mrg", ".mrg.gz")
Pair = tuple[str, str]  # words, linearised tree


class TreebankSource(Source):
    """Sentences with their trees; a pair is (words, linearised tree)."""

    source_lang, target_lang = "words", "trees"

    def splits(self) -> tuple[str, ...]:
        return SPLITS

    @abc.abstractmethod
    def trees(self, split: str) -> Iterator[Tree]:
        """Yields the trees of a split; those of train without the trees of another parser.

        Raises:
            T2TError: they cannot be read.
        """

    def count(self, split: str) -> int:
        return len(self._all(split))

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        """Implements `Source.pairs`; each token of a tree is followed by a space, the last one too."""
        yield from self._all(split)[start:stop]

    def labels(self) -> set[str]:
        """Returns the labels of all constituents of the train split."""
        return {label for _, tree in self._all("train") for label in labels(tree)}

    def _all(self, split: str) -> list[Pair]:
        """Returns all pairs of a split, cached as text, which takes a fiftieth of the memory of trees."""
        if split not in self._cache:
            self._cache[split] = list(self._read_pairs(split))
        if not self._cache[split]:
            raise T2TError(f"--data_source={self.name}: no trees in its {split} split")
        return self._cache[split]

    def _read_pairs(self, split: str) -> Iterator[Pair]:
        return map(pair_of, self.trees(split))

    @cached_property
    def _cache(self) -> dict[str, list[Pair]]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_cache"}


def pair_of(tree: Tree) -> Pair:
    """Returns the words of a tree and its tokens, each token followed by a space."""
    return sentence(tree), f"{linearise(tree)} "


def with_labels(pair: Pair, known: set[str]) -> Pair | None:
    """Replaces constituents whose labels are not `known` by their children.

    Returns:
        The pair; `None` if the rest is not one tree: the outermost constituent was removed and had several
        children.
    """
    all_tokens = pair[1].split()
    tokens = [token for token in all_tokens if token == WORD or token[1:] in known]
    if len(tokens) == len(all_tokens):
        return pair
    depth = 0
    for number, token in enumerate(tokens, start=1):
        depth += token.startswith(OPEN) - token.startswith(CLOSE)
        if depth == 0 and (token == WORD or number < len(tokens)):
            return None
    return (pair[0], "".join(f"{token} " for token in tokens)) if tokens else None


def treebank(name: str) -> TreebankSource:
    """Returns the treebank of a `--data_source`.

    Raises:
        T2TError: there is no such folder, or it is not a treebank.
    """
    if not name:
        raise T2TError(f"--data_source is missing, since the Penn Treebank is not free; {CHOICES}")
    if name == "sample":
        return SampleTrees()
    folder = Path(name).expanduser().resolve()
    if not folder.is_dir():
        raise T2TError(f"--data_source={name}: no such folder; {CHOICES}")
    if (folder / "wsj").is_dir():
        return PennTreebank(folder, folder / "wsj")
    return PennTreebank(folder, folder) if (folder / "02").is_dir() else TreesFolder(folder)


class SampleTrees(TreebankSource):
    """The trees of the built-in sample corpus."""

    kind = name = "sample"

    def trees(self, split: str) -> Iterator[Tree]:
        return map(parse, sample_corpus.lines(f"{split}.trees"))


class PennTreebank(TreebankSource):
    """The Penn Treebank: Wall Street Journal sections 02-21 for training, 22 as dev, 23 as test.

    Each section is a folder in `sections`; `folder` is the `--data_source`.
    """

    kind = "folder"

    def __init__(self, folder: Path, sections: Path) -> None:
        self.name = str(folder)
        self._sections = sections

    def trees(self, split: str) -> Iterator[Tree]:
        for section in SECTIONS[split]:
            for file in self._files(self._sections / f"{section:02}"):
                yield from read_trees(file)

    def files(self) -> list[Path]:
        sections = [section for split in SPLITS for section in SECTIONS[split]]
        return [file for section in sections for file in self._files(self._sections / f"{section:02}")]

    @staticmethod
    def _files(folder: Path) -> list[Path]:
        files = sorted(file for file in folder.glob("*") if file.name.endswith(SUFFIXES))
        if not files:
            raise T2TError(f"{folder}: no .mrg files; sections 02 to 21, 22 and 23 are needed; {CHOICES}")
        return files


class TreesFolder(TreebankSource):
    """A folder with train.trees, dev.trees and optionally test.trees; plain or .gz."""

    kind = "folder"

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder

    def splits(self) -> tuple[str, ...]:
        return tuple(split for split in SPLITS if split != "test" or self._file(split).exists())

    def trees(self, split: str) -> Iterator[Tree]:
        file = self._file(split)
        if not file.exists():
            raise T2TError(f"{file}: no such file, nor {file.name}.gz; {CHOICES}")
        return read_trees(file)

    def files(self) -> list[Path]:
        return [file for file in map(self._file, SPLITS) if file.exists()]

    def _file(self, split: str) -> Path:
        return plain_or_packed(self._folder / f"{split}.trees")


def mixture_name(gold: str, auto_trees: Sequence[str], gold_share: float) -> str:
    """Returns the `--data_source` of `MixedTrees`, which is also the source's name in metadata."""
    return f"{gold} auto_trees={json.dumps(list(auto_trees))} gold_share={gold_share}"


class MixedTrees(TreebankSource):
    """A treebank whose train split is mixed with trees of a parser.

    Of the labels of parsed trees, only those of the treebank are kept; see `with_labels`.

    Args:
        gold: the treebank.
        auto_trees: files of parsed sentences, or patterns such as "parsed/*.trees".
        gold_share: the treebank's share of the training examples, below 1; its trees are repeated until they
            reach it. 0 uses each tree once.

    Raises:
        T2TError: gold_share is not at least 0 and below 1.
    """

    def __init__(self, gold: TreebankSource, auto_trees: Sequence[str], gold_share: float) -> None:
        if not 0 <= gold_share < 1:
            raise T2TError(f"--gold_share={gold_share}: must be at least 0 and below 1")
        self._gold, self._gold_share = gold, gold_share
        self._patterns = [str(Path(pattern).expanduser().absolute()) for pattern in auto_trees]
        self.kind = gold.kind
        self.name = mixture_name(gold.name, self._patterns, gold_share)

    @classmethod
    def from_name(cls, name: str) -> MixedTrees:
        """Returns the mixture of a `mixture_name`.

        Raises:
            T2TError: it names no parsed sentences, or no treebank.
        """
        gold, auto_trees, rest = name.partition(" auto_trees=")
        if not auto_trees:
            raise T2TError("--auto_trees is missing: give files of parsed sentences, separated by commas")
        files, _, gold_share = rest.partition(" gold_share=")
        return cls(treebank(gold), json.loads(files), float(gold_share))

    def splits(self) -> tuple[str, ...]:
        return self._gold.splits()

    def trees(self, split: str) -> Iterator[Tree]:
        return self._gold.trees(split)

    def files(self) -> list[Path]:
        return [*self._gold.files(), *map(Path, self._files())]

    def _read_pairs(self, split: str) -> Iterator[Pair]:
        gold = self._gold.pairs(split, 0, self._gold.count(split))
        if split != "train":
            return gold
        all_parsed = [pair_of(tree) for file in self._files() for tree in read_trees(file)]
        known = self._gold.labels()
        parsed = [pair for pair in (with_labels(pair, known) for pair in all_parsed) if pair]
        if not parsed:
            fault = "none of its trees has the treebank's labels" if all_parsed else "no trees there"
            raise T2TError(f"--auto_trees={','.join(self._patterns)}: {fault}")
        return _interleaved(list(gold), parsed, self._gold_share)

    def _files(self) -> Iterator[str]:
        for pattern in self._patterns:
            files = [pattern] if Path(pattern).is_file() else sorted(glob.glob(pattern))
            if not files:
                raise T2TError(f"--auto_trees={pattern}: no such file")
            yield from files


def _interleaved(gold: Sequence[Pair], parsed: Sequence[Pair], gold_share: float) -> Iterator[Pair]:
    """Mixes both evenly, since a shard is a contiguous range of pairs."""
    natural = len(gold) / (len(gold) + len(parsed))
    if gold_share and gold_share < natural:
        raise T2TError(
            f"--gold_share={gold_share}: {len(gold):,} gold trees beside {len(parsed):,} parsed ones already "
            f"are a share of {natural:.2f}; give a larger share, or 0 to use each tree once"
        )
    num_gold = round(len(parsed) * gold_share / (1 - gold_share)) if gold_share else len(gold)
    total = num_gold + len(parsed)
    for number in range(total):
        before, after = (n * len(parsed) // total for n in (number, number + 1))
        yield parsed[before] if after > before else gold[(number - before) % len(gold)]
