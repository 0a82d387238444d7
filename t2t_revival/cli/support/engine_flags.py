"""The flags of the engine that decodes, and how much it computes at the same time."""

from __future__ import annotations

from absl import flags

from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.decoding.options import CTRANSLATE2, ENGINES, FLOAT32, JAX, PRECISIONS, TENSORFLOW
from t2t_revival.utils import keras_config


def define(values: flags.FlagValues, prefix: str = "") -> None:
    """Adds the flags of the engine that decodes; their names begin with `prefix`, here and below."""
    flags.DEFINE_enum(
        f"{prefix}engine",
        TENSORFLOW,
        ENGINES,
        "Engine that decodes. ctranslate2 needs the package of that name; it converts a checkpoint once, "
        "into a folder beside it.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        f"{prefix}precision",
        FLOAT32,
        PRECISIONS,
        "Type of the numbers with which the engine decodes.",
        flag_values=values,
    )


def uses_ctranslate2(values: flags.FlagValues, prefix: str = "") -> bool:
    """Returns whether CTranslate2 decodes."""
    return values[f"{prefix}engine"].value == CTRANSLATE2


def uses_jax(values: flags.FlagValues, prefix: str = "") -> bool:
    """Returns whether JAX decodes, as Keras's backend."""
    return not uses_ctranslate2(values, prefix) and keras_config.backend() == JAX


def load_backend(values: flags.FlagValues, typed: bool = False, prefix: str = "") -> None:
    """Imports Keras's backend where it is the engine; see `tensorflow_setup.load_backend`."""
    if not uses_ctranslate2(values, prefix):
        tensorflow_setup.load_backend(values, typed)


def num_parallel_batches(values: flags.FlagValues, typed: bool = False, prefix: str = "") -> int:
    """Chooses how many batches to decode side by side; lines that are `typed` come one by one."""
    from t2t_revival.decoding.ctranslate2_engine import num_parallel_batches

    if uses_ctranslate2(values, prefix):
        return 1 if typed else num_parallel_batches()
    if typed and not uses_jax(values, prefix):
        tensorflow_setup.use_one_thread()
        return 1
    return tensorflow_setup.num_parallel_batches()
