"""Keras's own configuration, KERAS_BACKEND and keras.json: checked and chosen where a command imports Keras.

KERAS_BACKEND is the user's word: it is obeyed, or an error. keras.json is meant for other programs too: where
its backend is not installed, or a command does not run with it, TensorFlow or JAX takes its place.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from t2t_revival.errors import T2TError
from t2t_revival.utils.files import cache_folder, check_writable

BACKEND = "KERAS_BACKEND"
TENSORFLOW, JAX = "tensorflow", "jax"
SUPPORTED = (TENSORFLOW, JAX)
FLOATX, EPSILON = "float32", 1e-7  # Keras's defaults, for which this project is written
_needed: str | None = None  # the only backend with which this command runs


def need(backend: str) -> str | None:
    """Notes the only backend with which this command runs; returns another one that the environment names."""
    global _needed
    asked = os.environ.get(BACKEND) or backend
    _check_supported(asked)
    is_new, _needed = _needed != backend, backend
    return asked if is_new and asked != backend else None


def backend() -> str:
    """Returns the name of the backend that Keras has, or will have when it is imported.

    Raises:
        T2TError: the one of the environment does not run the models of this project.
    """
    if keras := sys.modules.get("keras"):
        return str(keras.config.backend())
    name = _choose()
    _check_supported(name)
    return name


def import_keras() -> None:
    """Imports Keras with the chosen backend and the precision that this project needs.

    The environment is as before then, for the processes that this one starts. A Keras that is there already
    stays as it is. It comes before TensorFlow, which would import Keras as keras.json has it.

    Raises:
        T2TError: the backend does not run the models of this project, or is not installed, or does not start.
    """
    if "keras" in sys.modules:
        return
    name, before = _choose(), os.environ.get(BACKEND)
    _check_supported(name)
    if not importlib.util.find_spec(name):
        raise T2TError(f"{BACKEND}={name}: {name} is not installed: pip install {name}")
    os.environ[BACKEND] = name
    try:
        import keras
    except Exception as error:
        fault = " ".join(str(error).split()) or type(error).__name__
        raise T2TError(
            f"Keras does not start with its backend {name}: {fault}; look at {config_file()} and at the "
            "variables KERAS_*"
        ) from error
    finally:
        if before is None:
            del os.environ[BACKEND]
        else:
            os.environ[BACKEND] = before
    keras.config.set_floatx(FLOATX)
    keras.config.set_epsilon(EPSILON)
    if name == JAX:
        keep_programs()


def keep_programs() -> None:
    """Has JAX keep what it compiles in `cache_folder`, unless JAX_COMPILATION_CACHE_DIR names another folder.

    Those that compile within a second are kept too: a training begins with dozens of them. None are kept
    where the folder cannot be written, or JAX_ENABLE_COMPILATION_CACHE is false.
    """
    import jax

    chosen = jax.config.values
    if chosen["jax_enable_compilation_cache"] and not chosen["jax_compilation_cache_dir"]:
        with suppress(RuntimeError, T2TError):  # there is no home, or no right to write
            folder = cache_folder() / "compiled"
            check_writable(folder)
            jax.config.update("jax_compilation_cache_dir", str(folder))
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def check_usable() -> None:
    """Checks that models of this project run here, with Keras as it is configured."""
    import keras

    _check_supported(keras.config.backend())
    if keras.config.backend() == TENSORFLOW:
        import tensorflow as tf

        if not tf.executing_eagerly():
            raise T2TError(
                "TensorFlow does not execute eagerly here, as in a tf.Graph or a tf.function, or after "
                "tf.compat.v1.disable_eager_execution(): load and use models outside graphs (in tf.data, by "
                "tf.py_function), and run code of TensorFlow 1 in another process"
            )
    if keras.config.floatx() != FLOATX:
        raise T2TError(
            f"Keras's floatx is {keras.config.floatx()}, by {config_file()} or keras.config.set_floatx: "
            f'models here have a precision of their own; call keras.config.set_floatx("{FLOATX}")'
        )


def config_file() -> Path:
    """Returns the path of keras.json, as Keras finds it."""
    if "KERAS_HOME" in os.environ:
        return Path(os.path.expanduser(os.environ["KERAS_HOME"])) / "keras.json"
    home = os.path.expanduser("~")
    return Path(home if os.access(home, os.W_OK) else "/tmp", ".keras", "keras.json")


def _choose() -> str:
    """Returns the backend that the command needs, or the environment or keras.json asks for."""
    asked = _needed or os.environ.get(BACKEND)
    if asked:
        return asked
    try:
        in_file = str(json.loads(config_file().read_text()).get("backend", TENSORFLOW))
    except (OSError, ValueError, AttributeError):  # whose faults Keras itself tells
        in_file = TENSORFLOW
    names = [name for name in (in_file, *SUPPORTED) if name in SUPPORTED]
    return next(filter(importlib.util.find_spec, names), in_file)


def _check_supported(name: str) -> None:
    if name not in SUPPORTED:
        raise T2TError(
            f"{BACKEND}={name}: models run with {' or '.join(SUPPORTED)}: set {BACKEND} to one of them, "
            "before Keras is imported"
        )
