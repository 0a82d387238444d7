"""The settings of data: how it is to be made, and how it was.

`DataConfig` has the settings of a problem's data, `DataSpec` also what the problem adds to it; `Metadata` is
the content of `PROBLEM.meta.json`.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from t2t_revival.data.base_source import TRAIN, Source
from t2t_revival.data.mixture import Corpus, Mixture, parse
from t2t_revival.data.vocabulary import TextEncoder, Vocabularies, copy_name, open_vocabulary
from t2t_revival.data.vocabulary.extension import extends
from t2t_revival.data.vocabulary.sentencepiece import LEAST_SIZE
from t2t_revival.errors import T2TError
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import is_file_name, path_of
from t2t_revival.utils.made_of import MadeOf
from t2t_revival.utils.origins import Origins
from t2t_revival.utils.unicode_forms import main_form

MOST = 10_000_000  # pieces of a vocabulary, of which a model would need gigabytes
LATER = frozenset({"normalize"})  # fields of metadata that data of the same format may lack
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
    source_forms: dict[str, int] = field(default_factory=dict)  # `form_of` -> sources
    target_forms: dict[str, int] = field(default_factory=dict)

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
            dict(Counter(self.source_forms) + Counter(other.source_forms)),
            dict(Counter(self.target_forms) + Counter(other.target_forms)),
        )

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> SplitCounts:
        """Converts from the JSON form of `dataclasses.asdict`."""
        lengths = {int(length): examples for length, examples in fields["lengths"].items()}
        return cls(**{**fields, "lengths": lengths, "shard_bytes": tuple(fields["shard_bytes"])})


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
    normalize: Literal["", "nfc", "nfd"] = ""  # Unicode's form into which the text was brought
    origins: Origins = field(default_factory=Origins)  # what the source was
    given_vocabularies: Origins = field(
        default_factory=Origins
    )  # the files that vocabularies were copied or extended from
    corpora: dict[str, float] = field(default_factory=dict)  # of a mixture, and their weights
    tags: list[str] = field(default_factory=list)  # before sources of a mixture
    target_vocab_file: str = ""  # of the targets; empty where inputs and targets share one
    target_vocab_fingerprint: str = ""
    target_vocab_size: int = 0
    format_version: int = checked_json.NEWEST

    @property
    def vocabularies(self) -> list[VocabularyFile]:
        """The vocabulary of both sides, or those of the inputs and of the targets; none in a new plan."""
        shared = VocabularyFile(self.vocab_file, self.vocab_fingerprint, self.vocab_size)
        targets = self.target_vocab_file, self.target_vocab_fingerprint, self.target_vocab_size
        return [each for each in (shared, VocabularyFile(*targets)) if each.name]

    @property
    def unicode_forms(self) -> tuple[str, str]:
        """Unicode's forms of the sources and of the targets of train; "" of a side that has several."""
        train = self.splits.get(TRAIN, SplitCounts())
        return main_form(train.source_forms), main_form(train.target_forms)

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
        known = {data_dir / made.name: made.fingerprint for made in self.vocabularies}
        return Vocabularies.open_known(known, f"the shards of {self.name} there were made")

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
        checked_json.check_fields(path, values, cls, LATER, REMEDY)
        splits = {split: SplitCounts.from_dict(counts) for split, counts in values["splits"].items()}
        recorded = {name: Origins.from_dict(values[name]) for name in ("origins", "given_vocabularies")}
        metadata = cls(**{**values, **recorded, "splits": splits})
        files = [made.name for made in metadata.vocabularies]
        names = (metadata.name, *metadata.pairs, *metadata.splits, *files)
        if invalid := [name for name in names if not is_file_name(name)]:
            raise T2TError(f"{path}: corrupt ({invalid[0]!r} is not a valid file name); {HINT}")
        return metadata


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


@dataclass(frozen=True)
class DataConfig:
    """The settings of a problem's data, which are flags of t2t-datagen.

    `None`, 0 and an empty tuple take data as it is there; see `check`.

    Attributes:
        data_source: Source of sentence pairs: a folder with train.en train.de dev.en dev.de [test.en test.de]
            (for your languages; .gz too), sample, wmt14, tfds:NAME/CONFIG, or hf:OWNER/NAME/CONFIG (or
            hf:FOLDER, in a format of Hugging Face datasets); several corpora as
            NAME=SOURCE:WEIGHT,NAME=SOURCE:WEIGHT, or a .yaml file of them. Source of trees: a Penn Treebank
            folder (with wsj/02 to wsj/23), a folder with train.trees dev.trees [test.trees], or sample. By
            default the source from which data_dir was made; for translation wmt14.
        vocab_size: Pieces of the vocabulary; 0 chooses by problem and corpus.
        vocab_file: An existing vocabulary, instead of learning one: vocab.*.spm, or T2T's vocab.*.subwords.
            Two, SOURCE,TARGET, are separate vocabularies; those of PROBLEM_rev are in the order of PROBLEM.
        normalize: Unicode form into which text is brought: nfc (letters with their marks) or nfd (apart).
        separate_vocabularies: A vocabulary for each side, of --vocab_size pieces each, as two scripts need:
            English and Chinese. By default one for both.
        update_vocab: Add the pieces that the training pairs need to the given vocabulary, whose ids stay;
            --vocab_size is the number of all then, by default a quarter more at most.
        clean: Drop training pairs that rules find faulty: broken text, equal sides, long sides, uneven
            lengths, few letters, duplicates. --noclean asks for data that is not cleaned.
        make_alignments: Word alignments of the training pairs, for guided_alignment_weight: those of the
            sample corpus's grammar, or of the folder's train.align, or else eflomal's.
        tmp_dir: Folder for unpacked files; by default inside data_dir. Downloads of TensorFlow Datasets go to
            TFDS_DATA_DIR instead, which other programs share.

    Raises:
        T2TError: vocab_size is no such number; both vocab_size and vocab_file are given; or vocab_file has
            not one name for each vocabulary.
    """

    data_source: str | None = None
    vocab_size: int = 0
    vocab_file: tuple[Path, ...] = ()
    separate_vocabularies: bool | None = None
    update_vocab: bool = False
    clean: bool | None = None
    make_alignments: bool = False
    normalize: Literal["", "nfc", "nfd"] = ""
    tmp_dir: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "vocab_file", _paths(self.vocab_file))
        for fault in self._faults():
            raise T2TError(fault)
        if self.vocab_file:
            object.__setattr__(self, "separate_vocabularies", len(self.vocab_file) == 2)
        if self.tmp_dir is not None:
            object.__setattr__(self, "tmp_dir", path_of(self.tmp_dir, "tmp_dir"))

    def _faults(self) -> Iterator[str]:
        size, paths, separate = self.vocab_size, self.vocab_file, self.separate_vocabularies
        shown = f"--vocab_file={','.join(map(str, paths))}"
        if size and paths and not self.update_vocab:
            yield f"--vocab_size={size} and {shown}: give one of them"
        if size and not LEAST_SIZE <= size <= MOST:
            yield (
                f"--vocab_size={size}: not a number of pieces from {LEAST_SIZE} (256 are bytes) to {MOST:,}, "
                "such as 8000; 0 chooses by problem and corpus"
            )
        if len(paths) > 2 or (paths and separate not in (None, len(paths) == 2)):
            many = "two files, as INPUTS,TARGETS" if separate or len(paths) > 2 else "one file"
            yield f"{shown}: give {many}"
        if len(set(map(copy_name, paths))) < len(paths):
            yield f"{shown}: two vocabularies need two names: rename a file, or give one for both"

    def flags(self) -> dict[str, Any]:
        """The flags of t2t-datagen that make such data; a vocabulary says itself whether it is one of two."""
        flags = {name: getattr(self, name) or None for name in SETTINGS if name != "tmp_dir"}
        separate = None if self.vocab_file else self.separate_vocabularies
        refused = {"noclean": self.clean is False, "noseparate_vocabularies": separate is False}
        return flags | {"separate_vocabularies": separate} | refused

    def check(self, data_dir: Path, made: Metadata, source: str | None) -> None:
        """Checks that data was made as this says, and from `source`, the name of one; `None` accepts any.

        Raises:
            T2TError: source, vocabulary size, vocabularies or cleaning differ, or word alignments are
                missing.
        """
        compared: dict[str, tuple[Any, Any]] = {  # what is there, and what is asked for
            "data_source": (made.source, source or None),
            "separate_vocabularies": (bool(made.target_vocab_file), self.separate_vocabularies),
            "clean": (made.clean, self.clean),
            "make_alignments": (made.aligned, self.make_alignments or None),
            "normalize": (made.normalize, self.normalize or None),
        }
        for vocabulary, file in zip(made.vocabularies, (*self.vocab_file, None, None), strict=False):
            if file and not self._is_of(file, vocabulary, data_dir):
                compared["vocab_file"] = vocabulary.name, str(file)
            if not file and self.vocab_size not in (0, vocabulary.size):
                compared["vocab_size"] = vocabulary.size, self.vocab_size
        held = MadeOf({name: there for name, (there, _) in compared.items()})
        now = MadeOf({name: asked for name, (_, asked) in compared.items() if asked is not None})
        remedy = "give another --data_dir, ask for what is there, or replace it with t2t-datagen --overwrite"
        held.check(now, f"{data_dir} holds {made.name} made with", remedy)

    def _is_of(self, file: Path, made: VocabularyFile, data_dir: Path) -> bool:
        """Returns whether a vocabulary is that of a file, or with `update_vocab`, one with more pieces."""
        given, path = open_vocabulary(file), data_dir / made.name
        if not self.update_vocab:
            return given.fingerprint == made.fingerprint
        if not path.is_file():  # it is made again, or reported where it is read
            return True
        updated = open_vocabulary(path)
        return updated.size > given.size and extends(updated, given)


SETTINGS = tuple(field.name for field in dataclasses.fields(DataConfig))


@dataclass(frozen=True)
class DataSpec:
    """The data of a problem.

    Attributes:
        name: the prefix of all file names.
        config: the settings. Without a data_source, the one that the data_dir was begun with, or else
            `default_source`; data is cleaned, and has a vocabulary or two, as it was begun, or else is not
            cleaned, and has one.
        default_source: the `--data_source` of an empty data_dir.
        make_source: called with a corpus and a folder for temporary files; returns the corpus's own source.
        mixture: called with a `--data_source`; returns its corpora.
        default_vocab_size: called with the kind of the source and its pairs of train; returns a number of
            pieces, for a config that has none.
        user_symbols: called with a source; returns texts that are always one piece of the vocabulary.
        references: called with the source and a split; returns one line per pair of dev or test against which
            outputs are measured. `None` measures them against the targets.
        overwrite: whether data that is there, or that was begun of other files, is replaced.
    """

    name: str
    config: DataConfig
    default_source: str
    make_source: Callable[[Corpus, Path | None], Source]
    default_vocab_size: Callable[[str, int], int]
    mixture: Callable[[str], Mixture] = parse
    user_symbols: Callable[[Source], Sequence[str]] = lambda source: ()
    references: Callable[[Source, str], Iterable[str]] | None = None
    overwrite: bool = False


def _paths(given: str | Path | Iterable[str | Path] | None) -> tuple[Path, ...]:
    """Returns the paths of no vocabulary, of one, or of the inputs' and the targets'."""
    names = given.split(",") if isinstance(given, str) else [given] if isinstance(given, Path) else given
    return tuple(Path(name).expanduser() for name in names or () if name)
