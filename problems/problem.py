"""`Problem`: the data of a task, and how it is decoded and measured (T2T's contract)."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registration
from t2t_revival.data.config import SETTINGS, DataConfig
from t2t_revival.data.corpus_generation import OnProgress
from t2t_revival.data.metadata import Metadata
from t2t_revival.data.vocabulary.text_encoder import TextEncoder
from t2t_revival.data.workers import ShardRunner, make_shards
from t2t_revival.errors import Command, T2TError
from t2t_revival.metrics.metric import METRICS, TEXT, TREES

if TYPE_CHECKING:
    import tensorflow as tf

    from t2t_revival.hparams.hparams import HParams

TRAIN, DEV, TEST = "train", "dev", "test"


class Problem(abc.ABC):
    """A task with its data: T2T's `Problem`.

    Ids: PAD 0, EOS 1, no BOS. Splits are "train", "dev" and "test".

    Args:
        **settings: fields of `DataConfig`. Where they do not say whether inputs and targets have a vocabulary
            each, the class does.

    Raises:
        T2TError: there is no such setting, or settings are invalid.
    """

    source_lang: str = ""
    target_lang: str = ""
    usual_hparams: tuple[str, str, str] = ("tiny", "small", "base")  # sample; up to a million pairs; more
    targets_are_text: bool = True  # otherwise they are trees
    was_reversed: bool = False  # whether inputs are the shards' targets (T2T's name)
    separate_vocabularies: bool | None = None  # of a class for two scripts, True

    def __init__(self, **settings: Any) -> None:
        if unknown := [name for name in settings if name not in SETTINGS]:
            raise T2TError(
                f"problem {self.name} has no setting {unknown[0]}; its settings: {', '.join(SETTINGS)}"
            )
        if settings.get("separate_vocabularies") is None:
            settings["separate_vocabularies"] = self.separate_vocabularies
        self.config = DataConfig(**settings)
        if self.config.update_vocab and not self.config.vocab_file:
            raise T2TError("--update_vocab needs a vocabulary to add to: give --vocab_file")

    @property
    def name(self) -> str:
        """The class name in snake_case, as in the registry."""
        return registration.snake_case(type(self).__name__)

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

    def datagen_command(
        self, data_dir: Path, vocab_file: Sequence[Path] = (), source: str | None = None
    ) -> Command:
        """Returns the command that generates the problem's data; FOLDER is a source that only the user knows.

        Args:
            data_dir: the folder of the data.
            vocab_file: the vocabulary of the model that reads the data, or the files of both, in the order of
                the data; without one, it is left to the problem.
            source: the one to take, where the problem names none.
        """
        default = getattr(self, "default_source", "")
        if default == "wmt14" and not getattr(self, "tfds_default", ""):
            default = ""
        config = self.config
        if not config.data_source:
            config = config.replace(data_source=source or ("" if default else "FOLDER"))
        if vocab_file:
            config = config.replace(
                vocab_size=0, vocab_file=vocab_file, update_vocab=False, separate_vocabularies=None
            )
        return Command("t2t-datagen", problem=self.name, data_dir=data_dir, **config.flags())

    def hparams(self, defaults: HParams) -> HParams:
        """Returns the hyperparameters to train with, given the requested ones."""
        return defaults

    def eval_metrics(self) -> tuple[str, ...]:
        """Returns the names of the metrics of a split, of `METRICS`."""
        outputs = TEXT if self.targets_are_text else TREES
        return tuple(metric.name for metric in METRICS if metric.outputs in ("", outputs))

    def decode_hparams(self) -> dict[str, Any]:
        """Returns the defaults of decoding: beam_size, alpha, extra_length."""
        return {"beam_size": 4, "alpha": 0.6, "extra_length": 50}
