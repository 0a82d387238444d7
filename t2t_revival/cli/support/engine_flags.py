"""The flags of the engine that decodes, and how much it computes at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.flags import group
from t2t_revival.cli.support.messages import say
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.capabilities import Place
from t2t_revival.decoding.engine import EngineConfig
from t2t_revival.decoding.options import CTRANSLATE2, INT8, JAX, DecodeHParams
from t2t_revival.decoding.trained_models import TrainedModel, load_translator
from t2t_revival.utils import keras_config

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator


@dataclass(frozen=True)
class Engine:
    """The engine that decodes.

    Attributes:
        name: Engine that decodes. ctranslate2 needs the package of that name; it converts a checkpoint once,
            into a folder beside it.
        precision: Type of the numbers with which the engine decodes; int8 is CTranslate2's.
    """

    name: Literal["tensorflow", "ctranslate2"] = "tensorflow"
    precision: Literal["float32", "bfloat16", "int8"] = "float32"

    def __str__(self) -> str:
        return f"{self.name}, {self.precision}"

    @property
    def is_ctranslate2(self) -> bool:
        return self.name == CTRANSLATE2

    @property
    def is_jax(self) -> bool:
        """Returns whether JAX decodes, as Keras's backend."""
        return not self.is_ctranslate2 and keras_config.backend() == JAX

    @property
    def place(self) -> Place:
        """The engine, as a place of what can be asked for."""
        return EngineConfig(self.name).place

    def check(self) -> None:
        """Raises T2TError for a precision that the engine does not have; CTranslate2 checks its own."""
        capabilities.check(DecodeHParams().asked({"int8": self.precision == INT8}), self.place)

    def load_backend(self, typed: bool = False) -> None:
        """Imports Keras's backend where it is the engine; see `tensorflow_setup.load_backend`."""
        if not self.is_ctranslate2:
            tensorflow_setup.load_backend(typed)

    def load_translator(self, models: Sequence[TrainedModel], options: DecodeHParams) -> Translator:
        """Loads Keras's backend if it decodes, and a model, or an ensemble; see `trained_models`."""
        self.load_backend()
        parallel, name = self.num_parallel_batches(), self.name
        return load_translator(models, options, parallel, engine=name, precision=self.precision, on_note=say)

    def num_parallel_batches(self, typed: bool = False) -> int:
        """Chooses how many batches to decode side by side; lines that are `typed` come one by one."""
        from t2t_revival.addons.ctranslate2.engine import num_parallel_batches

        if self.is_ctranslate2:
            return 1 if typed else num_parallel_batches()
        if typed and not self.is_jax:
            tensorflow_setup.use_one_thread()
            return 1
        return tensorflow_setup.num_parallel_batches()


def engine_flags(prefix: str = "") -> Engine:
    """Returns the field of the engine that decodes; the names of its flags begin with `prefix`."""
    return group(Engine(), {f"{prefix}engine": "name", f"{prefix}precision": "precision"})
