"""The start of Keras's backend: TensorFlow's import without chatter, and its threads."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from t2t_revival.cli.support.messages import say
from t2t_revival.data.workers import cores
from t2t_revival.errors import T2TError
from t2t_revival.utils import keras_config, native_log
from t2t_revival.utils.keras_config import TENSORFLOW

ONEDNN = "TF_ENABLE_ONEDNN_OPTS"  # read by TensorFlow when it is imported
BFLOAT16 = re.compile(r"\b(avx512_bf16|amx_bf16)\b")  # a processor's instructions for products in bfloat16
MIN_TOKENS_PER_PART = 1024  # parts of a batch that are smaller are not worth computing side by side
MAX_TRAINING_PARTS = 8  # each has a copy of the graph


def load_backend(typed: bool = False) -> None:
    """Imports Keras's backend, of a command that runs with each; see `load_tensorflow`.

    Raises:
        T2TError: the backend that the environment names is not installed, or there is none of that name.
    """
    if keras_config.backend() == TENSORFLOW:
        load_tensorflow(typed)
    else:
        say("starting JAX")
        with _importing():
            keras_config.import_keras()


def load_tensorflow_alone() -> None:
    """Imports TensorFlow, of a command whose models run with that backend of Keras alone.

    Raises:
        T2TError: the environment names a backend with which no models run.
    """
    if asked := keras_config.need(TENSORFLOW):
        say(f"{keras_config.BACKEND}={asked}: this command runs with {TENSORFLOW}")
    load_tensorflow()


def load_tensorflow(typed: bool = False) -> None:
    """Imports TensorFlow without what it prints at its start, unless `--debug` is given.

    For lines that are `typed`, which come one by one, without oneDNN too, unless the environment has it on:
    with the few rows of one line, its operations take longer than TensorFlow's own.
    """
    if typed:
        os.environ.setdefault(ONEDNN, "0")
    if TENSORFLOW not in sys.modules:
        say("starting TensorFlow")
    if not importlib.util.find_spec(TENSORFLOW):
        raise T2TError("this command needs TensorFlow: pip install tensorflow tensorflow-text")
    with _importing():
        keras_config.import_keras()
        importlib.import_module(TENSORFLOW).config.list_physical_devices()


@contextlib.contextmanager
def _importing() -> Iterator[None]:
    """Keeps an import quiet, and what it makes out of the search for garbage from then on.

    400,000 objects that nothing will free: looking through them takes a third of the import's time, and later
    stops a server for 0.3 s at a time.
    """
    is_first = "keras" not in sys.modules and gc.isenabled()
    if is_first:
        gc.disable()
    try:
        with native_log.quiet():
            yield
    finally:
        if is_first:
            gc.freeze()
            gc.enable()


def num_parallel_batches(at_most: int | None = None) -> int:
    """Chooses how many batches to compute side by side, and sets TensorFlow's threads for each of them.

    One on other backends, which use all cores.

    On CPUs as many as there are cores: operations of one thread each, side by side, use the cores better than
    operations that are spread over them one after the other. Elsewhere one. A second call must ask for the
    same. With an upper limit `at_most`, the cores are shared out evenly.
    """
    if keras_config.backend() != TENSORFLOW:
        return 1
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        return 1
    available = cores()
    number = max(n for n in range(1, min(available, at_most or available) + 1) if available % n == 0)
    try:
        tf.config.threading.set_intra_op_parallelism_threads(available // number)
    except RuntimeError:  # TensorFlow was in use before, with threads of its own
        return 1
    return number


def use_one_thread() -> None:
    """Sets TensorFlow's threads for one short text at a time, whose operations are too small to share."""
    import tensorflow as tf

    with contextlib.suppress(RuntimeError):  # TensorFlow was in use before
        if not tf.config.list_physical_devices("GPU"):
            tf.config.threading.set_intra_op_parallelism_threads(1)
            tf.config.threading.set_inter_op_parallelism_threads(1)


def num_training_parts(batch_size: int) -> int:
    """`num_parallel_batches` for the parts of a training's batches of `batch_size` tokens."""
    return num_parallel_batches(min(MAX_TRAINING_PARTS, max(1, batch_size // MIN_TOKENS_PER_PART)))


def fast_precision() -> Literal["float32", "mixed_bfloat16"]:
    """Returns mixed_bfloat16 where TensorFlow's processor has instructions for it, else float32."""
    described = Path("/proc/cpuinfo")
    if keras_config.backend() != TENSORFLOW or not described.exists():
        return "float32"
    return "mixed_bfloat16" if BFLOAT16.search(described.read_text()) else "float32"
