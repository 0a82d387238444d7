"""`DataSpec`, the data that a problem asks for, and `Metadata`, the content of its `PROBLEM.meta.json`."""

from __future__ import annotations

import dataclasses
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t2t_revival.data.records import remedy
from t2t_revival.data.sources import Source
from t2t_revival.data.vocabulary import open_vocabulary
from t2t_revival.data.vocabulary.extension import extends
from t2t_revival.data.vocabulary.text_encoder import fingerprint
from t2t_revival.errors import T2TError
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import is_file_name

FORMAT_VERSION = 1
SAMPLED_BYTES = 2**20  # of each file, for a fingerprint
HINT = "put a copy back, or use another --data_dir"


@dataclass(frozen=True)
class DataSpec:
    """The source, vocabulary and references of a problem's data.

    Attributes:
        name: the prefix of all file names.
        data_source: the `--data_source`. `None` uses the one that the data_dir was begun with, or else
            `default_source`.
        default_source: the `--data_source` of an empty data_dir.
        make_source: called with a `--data_source` and a folder for temporary files; returns the source.
        vocab_size: number of pieces. 0 uses `default_vocab_size`, or as many as the text yields if those are
            fewer.
        default_vocab_size: called with the source; returns a number of pieces.
        user_symbols: called with the source; returns texts that are always one piece of the vocabulary.
        references: called with the source and a split; returns one line per pair of dev or test against which
            outputs are measured. `None` measures them against the targets.
        vocab_file: an existing vocabulary to use. `None` trains one.
        update_vocab: whether pieces of the training pairs are added to `vocab_file`.
        clean: whether the rules of `data.cleaning` drop pairs of train. `None` does as the data_dir was begun
            with, or else drops none.
    """

    name: str
    data_source: str | None
    default_source: str
    make_source: Callable[[str, Path | None], Source]
    vocab_size: int
    default_vocab_size: Callable[[Source], int]
    user_symbols: Callable[[Source], Sequence[str]] = lambda source: ()
    references: Callable[[Source, str], Iterable[str]] | None = None
    vocab_file: Path | None = None
    clean: bool | None = None
    update_vocab: bool = False


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

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.shard_bytes)

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
    def from_dict(cls, values: dict[str, Any]) -> SplitCounts:
        """Converts from the JSON form of `dataclasses.asdict`."""
        lengths = {int(length): examples for length, examples in values["lengths"].items()}
        return cls(**{**values, "lengths": lengths, "shard_bytes": tuple(values["shard_bytes"])})


def dropped(counts: SplitCounts, max_length: int) -> int:
    """Returns the number of examples that training drops: one side has more than `max_length` tokens."""
    return sum(examples for length, examples in counts.lengths.items() if length > max_length)


@dataclass(frozen=True)
class Metadata:
    """The source of the data, its vocabulary, and the counts of each split."""

    name: str  # of the problem
    source: str
    source_lang: str
    target_lang: str
    pairs: dict[str, int]  # split -> pairs in the source
    vocab_file: str = ""  # inside the data_dir
    vocab_fingerprint: str = ""  # SHA-256 of that file
    vocab_size: int = 0
    splits: dict[str, SplitCounts] = field(default_factory=dict)  # empty in a plan
    clean: bool = False  # whether train is cleaned
    weighted: bool = False  # whether examples of train have weights
    corpora: dict[str, float] = field(
        default_factory=dict
    )  # of a mixture: name -> weight; see `data.mixture`
    tags: list[str] = field(default_factory=list)  # before sources of a mixture
    format_version: int = FORMAT_VERSION

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
            metadata = cls(**{**values, "splits": splits})
            names = (metadata.name, *metadata.pairs, *metadata.splits, metadata.vocab_file or "none yet")
            if invalid := [name for name in names if not is_file_name(name)]:
                raise ValueError(f"{invalid[0]!r} is not a valid file name")
            numbers = (metadata.vocab_size, *metadata.pairs.values())  # which become parts of file names
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


def check_same(
    data_dir: Path,
    metadata: Metadata,
    source: str | None,
    vocab_size: int,
    vocab_file: Path | None = None,
    clean: bool | None = None,
    update_vocab: bool = False,
) -> None:
    """Checks that data was made from the requested source and vocabulary, and cleaned or not, as requested.

    `None` and 0 accept any.

    Raises:
        T2TError: source, vocabulary size, vocabulary or cleaning differ; names both.
    """
    fault = _vocabulary_fault(data_dir, metadata, vocab_size, vocab_file, update_vocab)
    if source and source != metadata.source:
        fault = f"from {metadata.source}, not from {source}"
    elif not fault and clean not in (None, metadata.clean):
        fault = "with --clean, not without it" if metadata.clean else "without --clean, not with it"
    if fault:
        hint = "give another --data_dir, or ask for what is there"
        raise T2TError(f"{data_dir} holds {metadata.name} made {fault}; {hint}")


def _vocabulary_fault(
    data_dir: Path, metadata: Metadata, vocab_size: int, vocab_file: Path | None, update_vocab: bool
) -> str:
    """Describes what the vocabulary of data has been made with other than requested; see `check_same`."""
    if not (vocab_file and metadata.vocab_file):
        differs = not vocab_file and vocab_size not in (0, metadata.vocab_size)
        return f"with --vocab_size={metadata.vocab_size}, not {vocab_size}" if differs else ""
    asked, path = open_vocabulary(vocab_file), data_dir / metadata.vocab_file
    if not update_vocab:
        same = asked.fingerprint == metadata.vocab_fingerprint
        return "" if same else f"with {metadata.vocab_file}, not with {vocab_file}"
    if not path.is_file():  # it is made again, or reported where it is read
        return ""
    made = open_vocabulary(path)
    updated = made.size > asked.size and extends(made, asked)
    return "" if updated else f"with {metadata.vocab_file}, not with more pieces than {vocab_file}"


def check_vocabulary(path: Path, metadata: Metadata) -> None:
    """Raises T2TError if a file is not the vocabulary that the shards were made with."""
    if fingerprint(path) != metadata.vocab_fingerprint:
        raise T2TError(
            f"{path}: not the vocabulary that the shards of {metadata.name} there were made with; "
            "put the right file back or give another --data_dir"
        )


def check_sizes(paths: list[Path], counts: SplitCounts) -> None:
    """Checks that the number and the sizes of shards are those of the metadata; raises T2TError otherwise."""
    if len(paths) != counts.shards:
        raise T2TError(
            f"{paths[0].parent}: {len(paths)} shards like {paths[0].name} "
            f"instead of the {counts.shards} in the metadata; remove those that do not belong there"
        )
    for path, size in zip(paths, counts.shard_bytes, strict=True):
        if path.stat().st_size != size:
            raise T2TError(f"{path}: {path.stat().st_size} bytes instead of {size}; {remedy(path)}")


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
