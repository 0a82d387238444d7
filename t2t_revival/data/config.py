"""`DataConfig`, how the data of a problem is made, and `DataSpec`, with what the problem adds to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_revival.data.base_source import Source
from t2t_revival.data.metadata import Metadata, VocabularyFile
from t2t_revival.data.mixture import Corpus, Mixture, parse
from t2t_revival.data.vocabulary import copy_name, open_vocabulary
from t2t_revival.data.vocabulary.extension import extends
from t2t_revival.data.vocabulary.sentencepiece import LEAST_SIZE
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import path_of

MOST = 10_000_000  # pieces of a vocabulary, of which a model would need gigabytes


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
    tmp_dir: Path | None = None

    def __post_init__(self) -> None:
        paths, size = _paths(self.vocab_file), self.vocab_size
        if size and paths and not self.update_vocab:
            raise T2TError(f"--vocab_size={size} and --vocab_file={_listed(paths)}: give one of them")
        if size and not LEAST_SIZE <= size <= MOST:
            raise T2TError(
                f"--vocab_size={size}: not a number of pieces from {LEAST_SIZE} (256 are bytes) to {MOST:,}, "
                "such as 8000; 0 chooses by problem and corpus"
            )
        if paths:
            _check_files(paths, self.separate_vocabularies)
            object.__setattr__(self, "separate_vocabularies", len(paths) == 2)
        object.__setattr__(self, "vocab_file", paths)
        if self.tmp_dir is not None:
            object.__setattr__(self, "tmp_dir", path_of(self.tmp_dir, "tmp_dir"))

    def replace(self, **changes: Any) -> DataConfig:
        """Returns a config with some fields changed."""
        return dataclasses.replace(self, **changes)

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
        if fault := self._fault(data_dir, made, source):
            raise T2TError(
                f"{data_dir} holds {made.name} made {fault}; give another --data_dir, ask for what is there, "
                "or replace it with t2t-datagen --overwrite"
            )

    def _fault(self, data_dir: Path, made: Metadata, source: str | None) -> str:
        """Describes how data was made otherwise; "" if it was not."""
        if source and source != made.source:
            return f"from {made.source}, not from {source}"
        if self.separate_vocabularies not in (None, bool(made.target_vocab_file)):
            two, one = ("with two vocabularies", "with one vocabulary")
            return f"{one}, not with two" if self.separate_vocabularies else f"{two}, not with one"
        for vocabulary, file in zip(made.vocabularies, (*self.vocab_file, None, None), strict=False):
            if fault := self._vocabulary_fault(data_dir, vocabulary, file):
                return fault
        if self.clean not in (None, made.clean):
            return "with --clean, not without it" if made.clean else "without --clean, not with it"
        if self.make_alignments and not made.aligned:
            return "without --make_alignments, not with it"
        return ""

    def _vocabulary_fault(self, data_dir: Path, made: VocabularyFile, file: Path | None) -> str:
        if not file:
            differs = self.vocab_size not in (0, made.size)
            return f"with --vocab_size={made.size}, not {self.vocab_size}" if differs else ""
        given, path = open_vocabulary(file), data_dir / made.name
        if not self.update_vocab:
            return "" if given.fingerprint == made.fingerprint else f"with {made.name}, not with {file}"
        if not path.is_file():  # it is made again, or reported where it is read
            return ""
        updated = open_vocabulary(path)
        grown = updated.size > given.size and extends(updated, given)
        return "" if grown else f"with {made.name}, not with more pieces than {file}"


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


def _listed(paths: Iterable[Path]) -> str:
    return ",".join(map(str, paths))


def _check_files(paths: tuple[Path, ...], separate: bool | None) -> None:
    shown = f"--vocab_file={_listed(paths)}"
    if len(paths) > 2 or separate not in (None, len(paths) == 2):
        many = "two files, as INPUTS,TARGETS" if separate or len(paths) > 2 else "one file"
        raise T2TError(f"{shown}: give {many}")
    if len(set(map(copy_name, paths))) < len(paths):
        raise T2TError(f"{shown}: two vocabularies need two names: rename a file, or give one for both")
