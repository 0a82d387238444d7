"""What lies in a data_dir: `PROBLEM.meta.json`, and the plan of a run that has not finished."""

from __future__ import annotations

import dataclasses
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t2t_revival import checked_json
from t2t_revival.data.records import remedy
from t2t_revival.data.vocabularies import open_vocabulary
from t2t_revival.errors import T2TError
from t2t_revival.files import is_file_name

FORMAT_VERSION = 1
SAMPLED_BYTES = 2**20  # of each file, for a fingerprint
WAY_OUT = "put a copy back, or use another --data_dir"


@dataclass(frozen=True)
class Counts:
    """What a split, or a part of one, holds. Token counts include EOS."""

    examples: int = 0
    skipped: int = 0  # pairs with an empty side
    source_tokens: int = 0
    target_tokens: int = 0
    lengths: dict[int, int] = field(default_factory=dict)  # max(inputs, targets) in tokens -> examples
    shard_bytes: tuple[int, ...] = ()  # size of each shard file

    @property
    def shards(self) -> int:
        """How many files the split is cut into."""
        return len(self.shard_bytes)

    def __add__(self, other: Counts) -> Counts:
        lengths = dict(self.lengths)
        for length, examples in other.lengths.items():
            lengths[length] = lengths.get(length, 0) + examples
        return Counts(
            self.examples + other.examples,
            self.skipped + other.skipped,
            self.source_tokens + other.source_tokens,
            self.target_tokens + other.target_tokens,
            dict(sorted(lengths.items())),
            self.shard_bytes + other.shard_bytes,
        )

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Counts:
        """From what `dataclasses.asdict` and JSON make of it."""
        lengths = {int(length): examples for length, examples in values["lengths"].items()}
        return cls(**{**values, "lengths": lengths, "shard_bytes": tuple(values["shard_bytes"])})


def dropped(counts: Counts, max_length: int) -> int:
    """How many examples training leaves out because a side has more than `max_length` tokens."""
    return sum(examples for length, examples in counts.lengths.items() if length > max_length)


@dataclass(frozen=True)
class Metadata:
    """Where the data came from, the vocabulary it was made with, and what each split holds."""

    name: str  # of the problem
    source: str
    source_lang: str
    target_lang: str
    pairs: dict[str, int]  # split -> pairs in the source
    vocab_file: str = ""  # inside the data_dir
    vocab_fingerprint: str = ""  # SHA-256 of that file
    vocab_size: int = 0
    splits: dict[str, Counts] = field(default_factory=dict)  # empty in a plan
    format_version: int = FORMAT_VERSION

    def save(self, path: Path) -> None:
        """Writes `path` as JSON, whole or not at all."""
        checked_json.save(path, dataclasses.asdict(self), indent=1)

    @classmethod
    def load(cls, path: Path) -> Metadata:
        """Reads what `save` wrote.

        Raises:
            T2TError: the file is damaged, or of another version of this program.
        """
        values = checked_json.load(path, WAY_OUT)
        try:
            if values["format_version"] != FORMAT_VERSION:
                raise T2TError(
                    f"{path}: format {values['format_version']}, and this program reads {FORMAT_VERSION}; "
                    "generate the data again, in another --data_dir"
                )
            splits = {split: Counts.from_dict(counts) for split, counts in values["splits"].items()}
            metadata = cls(**{**values, "splits": splits})
            names = (metadata.name, *metadata.pairs, *metadata.splits, metadata.vocab_file or "none yet")
            if strange := [name for name in names if not is_file_name(name)]:
                raise ValueError(f"{strange[0]!r} is no name")
            numbers = (metadata.vocab_size, *metadata.pairs.values())  # of which names are made
            if others := [number for number in numbers if type(number) is not int]:
                raise ValueError(f"{others[0]!r} is no number")
            return metadata
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise T2TError(f"{path}: damaged ({error}); {WAY_OUT}") from error


def metadata_path(data_dir: Path, name: str) -> Path:
    """Where a problem's metadata lies; it is written when all its data is complete."""
    return data_dir / f"{name}.meta.json"


def check_same(
    data_dir: Path, found: Metadata, source: str | None, vocab_size: int, vocab_file: Path | None = None
) -> None:
    """Checks that the data in data_dir is what is asked for.

    Args:
        data_dir: named in the error.
        found: what is there.
        source: name of the source asked for; None: any.
        vocab_size: pieces asked for; 0: any.
        vocab_file: the vocabulary asked for; None: any.

    Raises:
        T2TError: another source, vocabulary size or vocabulary; both are named.
    """
    way_out = "give another --data_dir, or ask for what is there"
    if source and source != found.source:
        raise T2TError(
            f"{data_dir} holds {found.name} made from {found.source}, not from {source}; {way_out}"
        )
    if vocab_size not in (0, found.vocab_size):
        raise T2TError(
            f"{data_dir} holds {found.name} made with --vocab_size={found.vocab_size}, "
            f"not {vocab_size}; {way_out}"
        )
    if vocab_file and found.vocab_file and open_vocabulary(vocab_file).fingerprint != found.vocab_fingerprint:
        raise T2TError(
            f"{data_dir} holds {found.name} made with {found.vocab_file}, not with {vocab_file}; {way_out}"
        )


def check_sizes(paths: list[Path], counts: Counts) -> None:
    """Checks that shards have the number and the sizes they were written with.

    Raises:
        T2TError: one has not; it is named.
    """
    if len(paths) != counts.shards:
        raise T2TError(
            f"{paths[0].parent}: {len(paths)} shards like {paths[0].name}, "
            f"and the metadata says {counts.shards}"
        )
    for path, size in zip(paths, counts.shard_bytes, strict=True):
        if path.stat().st_size != size:
            raise T2TError(f"{path}: {path.stat().st_size} bytes instead of {size}; {remedy(path)}")


def data_fingerprint(paths: list[Path], vocab_fingerprint: str) -> str:
    """CRC-32 of a split's files: equal for equal data, wherever it lies.

    The size and the first MiB of each file are hashed, which is the whole of a usual dev split and enough to
    tell one training corpus from another.

    Args:
        paths: the split's shards in order, and what else its scores depend on.
        vocab_fingerprint: of the vocabulary, without which ids mean nothing.

    Returns:
        8 hexadecimal digits.
    """
    checksum = zlib.crc32(vocab_fingerprint.encode())
    for path in paths:
        checksum = zlib.crc32(str(path.stat().st_size).encode(), checksum)
        with path.open("rb") as file:
            checksum = zlib.crc32(file.read(SAMPLED_BYTES), checksum)
    return f"{checksum:08x}"
