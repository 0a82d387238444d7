"""`Mixture`: several corpora of a problem and their weights, as `--data_source` or a YAML file lists them.

`CorpusRows` are the pairs of a corpus.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import Any

from t2t_revival.data.base_source import TRAIN, Row, Source
from t2t_revival.data.cleaning import KEPT, rule_numbers
from t2t_revival.data.vocabulary.text_encoder import tagged
from t2t_revival.data.word_alignment import format_pharaoh, parse_pharaoh
from t2t_revival.errors import T2TError, at
from t2t_revival.utils import checked_yaml
from t2t_revival.utils.checked_yaml import check_keys
from t2t_revival.utils.unicode_forms import normalized

SUFFIXES = (".yaml", ".yml")
NAME = re.compile(r"[A-Za-z0-9_-]+")
NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf)"
PART = re.compile(rf"(?:({NAME.pattern})=)?(.*?)(?::({NUMBER}))?", re.IGNORECASE)
REVERSE = "_rev"  # ends the name of a corpus in the other direction
LIBRARIES = ("tfds:", "hf:")
NAMED = ("wmt14", "sample")  # sources; all others but the libraries' are folders
FORM = '"NAME=SOURCE:WEIGHT,NAME=SOURCE:WEIGHT"'


@dataclass(frozen=True)
class Corpus:
    """A corpus of a problem.

    Attributes:
        name: of letters, digits, "_" and "-"; part of its files' names. "" is the only one of its problem.
        source: its own `--data_source`.
        weight: the share of training examples that come from it is `weight` / the sum of all weights. `None`
            leaves that to the sizes of the corpora.
        tag: a text without spaces, put before each source; one piece of the vocabulary.
        limit: number of training pairs to take; 0 takes all.
        languages: (source, target), for problems of several languages.
        swapped: whether source and target of the pairs are swapped.
    """

    name: str
    source: str
    weight: float | None = None
    tag: str = ""
    limit: int = 0
    languages: tuple[str, str] | None = None
    swapped: bool = False

    def files_name(self, problem: str) -> str:
        """Returns the name that begins the names of the corpus's files."""
        return f"{problem}.{self.name}" if self.name else problem

    def source_name(self, name: str) -> str:
        """Returns the name of a source of that name with the changes that the corpus makes to it."""
        changes = [
            f"tag {self.tag}" if self.tag else "",
            f"first {self.limit} pairs of train" if self.limit else "",
            "source and target swapped" if self.swapped else "",
        ]
        return ", ".join([name, *filter(None, changes)])


@dataclass(frozen=True)
class Mixture:
    """Corpora of a problem.

    Attributes:
        corpora: at least one; names differ, and all or none have a weight.
        temperature: without weights, corpora of n pairs are weighted by n ** (1 / temperature); 1 or more.

    Raises:
        T2TError: names or weights are not as above, a weight is negative or not finite, or their sum is 0.
    """

    corpora: tuple[Corpus, ...]
    temperature: float = 1.0

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise T2TError(fault)

    def _faults(self) -> Iterator[str]:
        if not self.corpora:
            yield "it lists no corpora"
        names = Counter(corpus.name for corpus in self.corpora)
        for corpus in self.corpora:
            if not (NAME.fullmatch(corpus.name) or self.is_single):
                yield f"corpus {corpus.name!r}: a name consists of letters, digits, _ and -"
            if names[corpus.name] > 1:
                yield f"corpus {corpus.name!r} is listed {names[corpus.name]} times: name each once"
            if corpus.weight is not None and not 0 <= corpus.weight < math.inf:  # which NaN is not either
                yield f"corpus {corpus.name!r}: weight {corpus.weight:g} is not a number of 0 or more"
        missing = [corpus.name for corpus in self.corpora if corpus.weight is None]
        if 0 < len(missing) < len(self.corpora):
            yield f"corpus {missing[0]!r} has no weight: give all a weight, or none"
        if not missing and not sum(corpus.weight or 0 for corpus in self.corpora):
            yield "all weights are 0: give a corpus a weight above 0"
        if not 1 <= self.temperature < math.inf:  # which also bounds n ** (1 / temperature)
            yield f"temperature {self.temperature:g} is not a number of 1 or more"
        if not missing and self.temperature != 1:
            yield "it has weights and a temperature, which determines weights: give one of them"

    @property
    def is_single(self) -> bool:
        """True if it is one source, without a name."""
        return [corpus.name for corpus in self.corpora] == [""]

    @property
    def tags(self) -> list[str]:
        """The tags of the corpora, each once."""
        return list(dict.fromkeys(corpus.tag for corpus in self.corpora if corpus.tag))

    def weights(self, examples: Mapping[str, int]) -> dict[str, float]:
        """Returns the weight of each corpus, given the number of its training examples.

        Without weights and temperature, they are those numbers, so that each example has the same share.
        """
        if self.corpora[0].weight is not None:
            return {corpus.name: corpus.weight or 0 for corpus in self.corpora}
        if self.temperature == 1:
            return {corpus.name: examples[corpus.name] for corpus in self.corpora}
        return {corpus.name: examples[corpus.name] ** (1 / self.temperature) for corpus in self.corpora}


def is_mixture(data_source: str) -> bool:
    """Returns whether a `--data_source` lists corpora; the name of an existing folder does not."""
    if data_source.endswith(SUFFIXES):
        return True
    lists = "," in data_source or re.match(rf"{NAME.pattern}=", data_source)
    return bool(lists) and not os.path.isdir(os.path.expanduser(data_source))  # Path's raise where it is long


def parse(data_source: str) -> Mixture:
    """Parses a `--data_source`; one that does not list corpora is a single one of the name "".

    Raises:
        T2TError: it is not a valid list, or its YAML file is missing or not valid.
    """
    if not is_mixture(data_source):
        return Mixture((Corpus("", data_source),))
    with at(f"--data_source={data_source}"):
        if data_source.endswith(SUFFIXES):
            return _load(Path(data_source).expanduser())
        corpora = []
        for part in map(str.strip, data_source.split(",")):
            match = PART.fullmatch(part)
            if not match or not match[2]:
                raise T2TError(f"{part!r} is not NAME=SOURCE:WEIGHT; several corpora are listed as {FORM}")
            name, source, weight = match.groups()
            corpora.append(Corpus(name or _name_of(source), source, float(weight) if weight else None))
        return Mixture(tuple(corpora))


def _name_of(source: str) -> str:
    """Returns the name of a corpus without one: NAME-CONFIG of a library's set, or the folder's name."""
    library = next((prefix for prefix in LIBRARIES if source.startswith(prefix)), None)
    words = source.removeprefix(library) if library else Path(source).resolve().name
    return re.sub(r"[^A-Za-z0-9_-]+", "-", words).strip("-")


def _load(path: Path) -> Mixture:
    """Reads a YAML file; relative folders in it are relative to it."""
    values = checked_yaml.load(path)
    check_keys("the file", values, {"corpora": list, "temperature": float})
    corpora: list[Corpus] = []
    for number, entry in enumerate(values.get("corpora") or (), start=1):
        corpora += _corpora(f"corpus {number}", entry, path.parent)
    return Mixture(tuple(corpora), float(values.get("temperature", 1)))


KEYS = {
    "name": str,
    "source": str,
    "weight": float,
    "tag": (str, list),
    "limit": int,
    "languages": str,
    "both_directions": bool,
}


def _corpora(where: str, entry: Any, folder: Path) -> Iterator[Corpus]:
    """Yields the corpus of an entry of a YAML file, in both directions if it says so."""
    check_keys(where, entry, KEYS)
    both, tag = entry.get("both_directions", False), entry.get("tag", "")
    tags = tag if isinstance(tag, list) else [tag, ""] if both and not tag else [tag]
    for fault in _faults(entry, tags, 1 + both):
        raise T2TError(f"{where}: {fault}")
    source = entry["source"]
    if source not in NAMED and not source.startswith(LIBRARIES):
        source = str(folder / os.path.expanduser(source))
    name, limit = entry.get("name") or _name_of(source), entry.get("limit", 0)
    source_lang, _, target_lang = entry.get("languages", "").partition("-")
    languages = (source_lang, target_lang) if source_lang else None
    weight = float(entry["weight"]) / len(tags) if "weight" in entry else None
    for each, suffix, swapped in zip(tags, ("", REVERSE), (False, True), strict=False):
        yield Corpus(name + suffix, source, weight, each, limit, languages, swapped)


def _faults(entry: dict[str, Any], tags: list[Any], directions: int) -> Iterator[str]:
    if not entry.get("source"):
        yield "source is missing"
    if not all(entry.get("languages", "en-de").partition("-")):
        yield f"languages is {entry['languages']!r}, not SOURCE-TARGET such as en-de"
    if entry.get("limit", 0) < 0:
        yield f"limit is {entry['limit']}, not a number of pairs"
    if len(tags) != directions:
        asked = "two tags, such as [<2de>, <2en>]" if directions == 2 else "one tag"
        yield f"tag is {entry['tag']!r}, but its directions need {asked}"
    for tag in tags:
        if not isinstance(tag, str) or re.search(r"\s", tag):
            yield f"tag {tag!r} is not a text without spaces"


@dataclass(frozen=True)
class CorpusRows:
    """Rows of a source, changed in the order of the attributes. Processes that make shards unpickle them.

    Attributes:
        source: of the rows.
        alignments: a file with the word alignment of each pair of train; `None` leaves the rows' own.
        swapped: whether source and target are swapped.
        tag: stands before each source; "" is none.
        rules: the file of `cleaning.apply_rules`, by which rows of train are dropped; `None` keeps all.
        form: Unicode's, into which texts are brought; "" leaves them as they are.
    """

    source: Source
    alignments: Path | None = None
    swapped: bool = False
    tag: str = ""
    rules: Path | None = None
    form: str = ""

    def rows(self, split: str, start: int, stop: int) -> Iterator[Row]:
        """Yields the rows of the source's pairs number `start` up to `stop` of a split."""
        rows = self.source.rows(split, start, stop)
        if split == TRAIN and self.alignments:
            rows = _aligned(rows, self.alignments, start, stop)
        if self.swapped or self.tag or self.form:
            rows = map(self._changed, rows)
        if split == TRAIN and self.rules:
            rows = compress(rows, (rule == KEPT for rule in rule_numbers(self.rules, start, stop)))
        return rows

    def _changed(self, row: Row) -> Row:
        source, target = (normalized(side, self.form) for side in row[:2])
        weight, alignment = row[2:]
        if self.swapped:
            source, target = target, source
        if alignment is not None:
            links = parse_pharaoh(alignment).possible
            words = len(self.tag.split())
            alignment = format_pharaoh(
                (words + first, second)
                for first, second in (link[::-1] if self.swapped else link for link in links)
            )
        return Row(tagged([source], self.tag)[0], target, weight, alignment)


def _aligned(rows: Iterator[Row], file: Path, start: int, stop: int) -> Iterator[Row]:
    with file.open(encoding="utf-8", newline="\n") as lines:
        for row, line in zip(rows, islice(lines, start, stop), strict=True):
            yield row._replace(alignment=line.rstrip("\n"))
