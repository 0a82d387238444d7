"""`Metadata`: the content of `PROBLEM.meta.json`."""

from __future__ import annotations

import dataclasses
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from t2t_revival.data.base_source import Source
from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
from t2t_revival.errors import T2TError
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import is_file_name
from t2t_revival.utils.origins import Origins

FORMAT_VERSION = 1
SAMPLED_BYTES = 2**20  # of each file, for a fingerprint
REMEDY = "make it again by t2t-datagen with the same flags and --overwrite, or give another --data_dir"
HINT = "put a copy back, or use another --data_dir"


@dataclass(frozen=True)
class SplitCounts:
    """Counts of a split or of a shard. Token counts include EOS."""

    examples: int = 0
    skipped: int = 0  # pairs with an empty side, where they are not cleaned
    source_tokens: int = 0
    target_tokens: int = 0
    lengths: dict[int, int] = field(default_factory=dict)  # max(inputs, targets) in tokens -> examples
    shard_bytes: tuple[int, ...] = ()  # size of each shard file
    cleaned: dict[str, int] = field(default_factory=dict)  # rule of --clean -> dropped pairs

    def __add__(self, other: SplitCounts) -> SplitCounts:
        lengths = Counter(self.lengths) + Counter(other.lengths)
        return SplitCounts(
            self.examples + other.examples,
            self.skipped + other.skipped,
            self.source_tokens + other.source_tokens,
            self.target_tokens + other.target_tokens,
            dict(sorted(lengths.items())),
            self.shard_bytes + other.shard_bytes,
            dict(Counter(self.cleaned) + Counter(other.cleaned)),
        )

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> SplitCounts:
        """Converts from the JSON form of `dataclasses.asdict`."""
        lengths = {int(length): examples for length, examples in fields["lengths"].items()}
        return cls(**{**fields, "lengths": lengths, "shard_bytes": tuple(fields["shard_bytes"])})


def dropped(counts: SplitCounts, max_length: int) -> int:
    """Returns the number of examples that training drops: one side has more than `max_length` tokens."""
    return sum(examples for length, examples in counts.lengths.items() if length > max_length)


class VocabularyFile(NamedTuple):
    """Name of a vocabulary's file in the data_dir, its SHA-256, and the number of ids."""

    name: str
    fingerprint: str
    size: int


@dataclass(frozen=True)
class Metadata:
    """The source of the data, its vocabularies, and the counts of each split."""

    name: str  # of the problem
    source: str
    source_lang: str
    target_lang: str
    pairs: dict[str, int]  # split -> pairs in the source
    vocab_file: str = ""  # a `VocabularyFile`, of the inputs where there are two
    vocab_fingerprint: str = ""
    vocab_size: int = 0
    splits: dict[str, SplitCounts] = field(default_factory=dict)  # empty in a plan
    clean: bool = False  # whether train is cleaned
    weighted: bool = False  # whether examples of train have weights
    aligned: bool = False  # whether they have word alignments
    origins: Origins = field(default_factory=Origins)  # what the source was
    given_vocabularies: Origins = field(
        default_factory=Origins
    )  # the files that vocabularies were copied or extended from
    corpora: dict[str, float] = field(default_factory=dict)  # of a mixture, and their weights
    tags: list[str] = field(default_factory=list)  # before sources of a mixture
    target_vocab_file: str = ""  # of the targets; empty where inputs and targets share one
    target_vocab_fingerprint: str = ""
    target_vocab_size: int = 0
    format_version: int = FORMAT_VERSION

    @property
    def vocabularies(self) -> list[VocabularyFile]:
        """The vocabulary of both sides, or those of the inputs and of the targets; none in a new plan."""
        shared = VocabularyFile(self.vocab_file, self.vocab_fingerprint, self.vocab_size)
        targets = self.target_vocab_file, self.target_vocab_fingerprint, self.target_vocab_size
        return [each for each in (shared, VocabularyFile(*targets)) if each.name]

    def with_vocabularies(self, made: Sequence[TextEncoder]) -> Metadata:
        """Returns the same with one vocabulary, or with those of the inputs and of the targets."""
        files = [VocabularyFile(each.path.name, each.fingerprint, each.size) for each in made]
        first, second = files if len(files) > 1 else (files[0], VocabularyFile("", "", 0))
        return dataclasses.replace(
            self,
            vocab_file=first.name,
            vocab_fingerprint=first.fingerprint,
            vocab_size=first.size,
            target_vocab_file=second.name,
            target_vocab_fingerprint=second.fingerprint,
            target_vocab_size=second.size,
        )

    def open_vocabularies(self, data_dir: Path) -> Vocabularies:
        """Opens the vocabularies of inputs and targets.

        Raises:
            T2TError: one is missing, corrupt, or not that with which the shards were made.
        """
        opened = Vocabularies.open([data_dir / made.name for made in self.vocabularies])
        for vocabulary, made in zip(opened.all, self.vocabularies, strict=True):
            if vocabulary.fingerprint != made.fingerprint:
                raise T2TError(
                    f"{vocabulary.path}: not the vocabulary that the shards of {self.name} there were made "
                    "with; put the right file back or give another --data_dir"
                )
        return opened

    def check_origins(self, data_dir: Path, make_source: Callable[[], Source]) -> str:
        """Checks that what data from one source was made of has not changed.

        Args:
            data_dir: folder of the data.
            make_source: returns that source; called only where it has something to compare.

        Returns:
            A line on what cannot be checked, because it is not here; "" if all was checked.

        Raises:
            T2TError: a file of the source, its version, or a vocabulary that was given has changed.
        """
        made, known = f"{self.name} in {data_dir}", self.origins
        if change := self.given_vocabularies.change():
            raise T2TError(f"a vocabulary has changed since {made} was made with it: {change}; {REMEDY}")
        if not (known.files or known.version):
            return ""
        absent = f"{self.source} is not here: whether it has changed since {made} was made cannot be checked"
        if known.are_gone:
            return absent
        source = make_source()
        version = source.version() if known.version else ""
        if known.version and not version:
            return absent
        if change := known.change(source.files(), version):
            raise T2TError(f"{self.source} has changed since {made} was made of it: {change}; {REMEDY}")
        return ""

    @property
    def held(self) -> str:
        """The problem and the source, for messages."""
        return f"{self.name}, made from {self.source}"

    def save(self, path: Path) -> None:
        """Writes `path` as JSON, atomically."""
        checked_json.save(path, dataclasses.asdict(self), indent=1)

    @classmethod
    def load(cls, path: Path) -> Metadata:
        """Reads a file that `save` wrote.

        Raises:
            T2TError: the file is corrupt, or of another format version.
        """
        values = checked_json.load(path, HINT)
        try:
            if values["format_version"] != FORMAT_VERSION:
                raise T2TError(
                    f"{path}: format {values['format_version']}, but this program reads {FORMAT_VERSION}; "
                    "generate the data again, in another --data_dir"
                )
            splits = {split: SplitCounts.from_dict(counts) for split, counts in values["splits"].items()}
            recorded = {name: Origins.from_dict(values[name]) for name in ("origins", "given_vocabularies")}
            metadata = cls(**{**values, **recorded, "splits": splits})
            files = [made.name for made in metadata.vocabularies]
            names = (metadata.name, *metadata.pairs, *metadata.splits, *files)
            if invalid := [name for name in names if not is_file_name(name)]:
                raise ValueError(f"{invalid[0]!r} is not a valid file name")
            sizes = (metadata.vocab_size, metadata.target_vocab_size)
            numbers = (*sizes, *metadata.pairs.values())  # which become parts of file names
            if others := [number for number in numbers if type(number) is not int]:
                raise ValueError(f"{others[0]!r} is not an integer")
            return metadata
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise T2TError(f"{path}: corrupt ({error}); {HINT}") from error


def metadata_path(data_dir: Path, name: str) -> Path:
    """Returns the path of a problem's metadata, which is written when all data is complete."""
    return data_dir / f"{name}.meta.json"


def unfinished_dir(data_dir: Path, name: str) -> Path:
    """Returns the folder of an unfinished generation's plan and of the counts of its finished shards."""
    return data_dir / f".{name}.unfinished"


def references_path(data_dir: Path, name: str, split: str) -> Path:
    """Returns the path of a split's references, where those are not its targets."""
    return data_dir / f"{name}-{split}.references"


def cleaned_path(data_dir: Path, name: str) -> Path:
    """Returns the path of a sample of the pairs that `--clean` has dropped."""
    return data_dir / f"{name}.cleaned.txt"


def data_fingerprint(paths: list[Path], vocab_fingerprint: str) -> str:
    """Returns a CRC-32 of a split's files in 8 hexadecimal digits: equal for equal data, in any folder.

    The size and the first MiB of each file are hashed, which covers a usual dev split completely and
    distinguishes training corpora. The files are the shards in order, and others that scores depend on.
    """
    checksum = zlib.crc32(vocab_fingerprint.encode())
    for path in paths:
        checksum = zlib.crc32(str(path.stat().st_size).encode(), checksum)
        with path.open("rb") as file:
            checksum = zlib.crc32(file.read(SAMPLED_BYTES), checksum)
    return f"{checksum:08x}"
