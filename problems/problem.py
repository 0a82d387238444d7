"""`Problem`: the data of a task, and how it is decoded and measured (T2T's contract)."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registry
from t2t_revival.data.generation import OnProgress
from t2t_revival.data.metadata import Metadata
from t2t_revival.data.vocabulary import copy_name
from t2t_revival.data.vocabulary.sentencepiece import LEAST_SIZE
from t2t_revival.data.vocabulary.text_encoder import TextEncoder
from t2t_revival.data.workers import ShardRunner, make_shards
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import path_of

if TYPE_CHECKING:
    import tensorflow as tf

    from t2t_revival.hparams.hparams import HParams

TRAIN, DEV, TEST = "train", "dev", "test"
MOST = 10_000_000  # pieces of a vocabulary, of which a model would need gigabytes


class Problem(abc.ABC):
    """A task with its data: T2T's `Problem`.

    Ids: PAD 0, EOS 1, no BOS. Splits are "train", "dev" and "test".

    Args:
        data_source: the source of the examples. `None` uses that of the data in `data_dir`, or the default.
        vocab_size: number of pieces of the vocabulary, at least 260. 0 lets the problem choose.
        tmp_dir: the folder for files unpacked while data is made. `None` uses `data_dir/tmp`. Downloads of
            TensorFlow Datasets go to TFDS_DATA_DIR instead, which other programs share.
        vocab_file: an existing vocabulary to use: `vocab.*.spm`, or T2T's `vocab.*.subwords`; two, as
            "INPUTS,TARGETS" or paths, make separate ones. `None` trains one, or two.
        clean: whether training pairs are dropped that the rules of `data.cleaning` find faulty. `None` takes
            data that was made either way, and makes it without.
        update_vocab: whether pieces that the training pairs need are added to `vocab_file`; `vocab_size` is
            the number of all pieces then.
        separate_vocabularies: whether inputs and targets have a vocabulary each, both of `vocab_size`. `None`
            leaves it to the class; where it has None too, data is taken that was made either way, and made
            with one for both.
        make_alignments: whether training examples have word alignments: the source's own, or else eflomal's.

    Raises:
        T2TError: vocab_size is no such number; both vocab_size and vocab_file are given, or update_vocab
            without vocab_file; or vocab_file has not one name for each vocabulary.
    """

    usual_hparams: tuple[str, str, str] = ("tiny", "small", "base")  # sample; up to a million pairs; more
    was_reversed: bool = False  # whether inputs are the shards' targets (T2T's name)
    separate_vocabularies: bool | None = None  # of a class for two scripts, True

    def __init__(
        self,
        data_source: str | None = None,
        vocab_size: int = 0,
        tmp_dir: str | Path | None = None,
        vocab_file: str | Path | Sequence[Path] | None = None,
        clean: bool | None = None,
        update_vocab: bool = False,
        separate_vocabularies: bool | None = None,
        make_alignments: bool = False,
    ) -> None:
        if update_vocab and not vocab_file:
            raise T2TError("--update_vocab needs a vocabulary to add to: give --vocab_file")
        if vocab_size and vocab_file and not update_vocab:
            raise T2TError(f"--vocab_size={vocab_size} and --vocab_file={vocab_file}: give one of them")
        self.data_source = data_source
        self.vocab_size = _vocab_size(vocab_size)
        self.tmp_dir = None if tmp_dir is None else path_of(tmp_dir, "tmp_dir")
        if separate_vocabularies is not None:
            self.separate_vocabularies = separate_vocabularies
        self.vocab_files = _vocab_files(vocab_file, self.separate_vocabularies)
        if self.vocab_files:
            self.separate_vocabularies = len(self.vocab_files) == 2
        self.clean = clean
        self.update_vocab = update_vocab
        self.make_alignments = make_alignments

    @property
    def name(self) -> str:
        """The class name in snake_case, as in the registry."""
        return registry.snake_case(type(self).__name__)

    def dataset_filename(self) -> str:
        """Returns the prefix of this problem's files in data_dir."""
        return self.name

    @abc.abstractmethod
    def generate_data(
        self,
        data_dir: str | Path,
        tmp_dir: str | Path | None = None,
        progress: OnProgress | None = None,
        shard_runner: ShardRunner = make_shards,
        overwrite: bool = False,
    ) -> Metadata:
        """Makes the missing parts of vocabulary and shards.

        Args:
            data_dir: the folder of the data; created if missing.
            tmp_dir: overrides the problem's own.
            progress: called as `progress(stage, done, total)`, in pairs; see `data.generation`.
            shard_runner: makes the shards: in processes on this machine, or a `data.beam.BeamShardRunner`.
            overwrite: whether data that is there is made again, of this source and with this vocabulary.

        Raises:
            T2TError: the source cannot be read, or has changed since the data was made; or data_dir holds
                other data.
        """

    @abc.abstractmethod
    def has_data(self, data_dir: str | Path) -> bool:
        """Returns whether the data in `data_dir` is complete."""

    @abc.abstractmethod
    def feature_encoders(self, data_dir: str | Path) -> dict[str, TextEncoder]:
        """Returns the vocabularies of "inputs" and "targets"; raises T2TError for missing or corrupt ones."""

    @abc.abstractmethod
    def dataset(self, split: str, data_dir: str | Path) -> tf.data.Dataset:
        """Returns examples {"inputs", "targets"}, each int32 [length] with EOS, unbatched, in file order.

        Raises:
            T2TError: there is no data of that split in data_dir.
        """

    @property
    @abc.abstractmethod
    def approx_vocab_size(self) -> int:
        """Number of pieces of the vocabulary of a large corpus."""

    def hparams(self, defaults: HParams) -> HParams:
        """Returns the hyperparameters to train with, given the requested ones."""
        return defaults

    def eval_metrics(self) -> tuple[str, ...]:
        """Returns the names of the metrics of the dev split."""
        return ("loss", "perplexity", "accuracy")

    def decode_hparams(self) -> dict[str, Any]:
        """Returns the defaults of decoding: beam_size, alpha, extra_length."""
        return {"beam_size": 4, "alpha": 0.6, "extra_length": 50}


def _vocab_size(given: int) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and (not given or LEAST_SIZE <= given <= MOST):
        return given
    raise T2TError(
        f"--vocab_size={given!r}: not a number of pieces from {LEAST_SIZE} (256 are bytes) to {MOST:,}, such "
        "as 8000; 0 chooses by problem and corpus"
    )


def _vocab_files(given: str | Path | Sequence[Path] | None, separate: bool | None) -> tuple[Path, ...]:
    """Returns the paths of no vocabulary, of one, or of the inputs' and the targets'."""
    if not given:
        return ()
    named = given.split(",") if isinstance(given, str) else [given] if isinstance(given, Path) else given
    paths = tuple(Path(name).expanduser() for name in named)
    shown = f"--vocab_file={','.join(map(str, paths))}"
    if len(paths) > 2 or separate not in (None, len(paths) == 2):
        many = "two files, as INPUTS,TARGETS" if separate or len(paths) > 2 else "one file"
        raise T2TError(f"{shown}: give {many}")
    if len(set(map(copy_name, paths))) < len(paths):
        raise T2TError(f"{shown}: two vocabularies need two names: rename a file, or give one for both")
    return paths
