"""Keras's own configuration, KERAS_BACKEND and keras.json: checked, or chosen, at its first import.

KERAS_BACKEND is the user's word: it is obeyed, or an error. keras.json is meant for other programs too: where
its backend is not installed, or a command does not run with it, TensorFlow or JAX takes its place.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from t2t_revival.errors import T2TError
from t2t_revival.utils.import_hooks import wrap_import

BACKEND = "KERAS_BACKEND"
TENSORFLOW, JAX = "tensorflow", "jax"
SUPPORTED = (TENSORFLOW, JAX)
OF_KERAS = (*SUPPORTED, "torch", "numpy", "openvino")
FLOATX, EPSILON = "float32", 1e-7  # Keras's defaults, for which this project is written
KNOWN: dict[str, type | list[str]] = {  # values that Keras accepts in keras.json
    "floatx": ["float16", "float32", "float64"],
    "epsilon": float,
    "image_data_format": ["channels_first", "channels_last"],
}


class _Process:
    """Facts of this process: whether it is a command, and the backend that it needs."""

    is_command = False
    needed: str | None = None


def check_at_import() -> None:
    """Checks the configuration when Keras is imported, or TensorFlow, whose copy of it reads keras.json."""
    wrap_import("tensorflow", _with_valid_file)
    wrap_import("keras", _with_valid_file)
    wrap_import("keras", _configured)


def own_process() -> None:
    """Notes that this process is a command: values of keras.json that it cannot use are replaced."""
    _Process.is_command = True


def need(backend: str) -> str | None:
    """Notes the only backend with which this process runs; returns another one that the environment names."""
    asked = os.environ.get(BACKEND) or backend
    _check_supported(asked)
    is_new, _Process.needed = _Process.needed != backend, backend
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


def check_usable() -> None:
    """Checks that models of this project run with Keras as it is configured.

    Raises:
        T2TError: they do not.
    """
    import keras

    _check_supported(keras.config.backend())
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
    """Returns the backend that the process needs, or the environment or keras.json asks for."""
    asked = _Process.needed or os.environ.get(BACKEND)
    if asked:
        return asked
    in_file = str(_in_file().get("backend", TENSORFLOW))
    names = [name for name in (in_file, *SUPPORTED) if name in SUPPORTED or not _Process.is_command]
    return next(filter(_is_installed, names), in_file)


def _in_file() -> dict[str, Any]:
    """Returns the values of keras.json, as Keras reads it: a file that is not JSON has none.

    Raises:
        T2TError: Keras would fail.
    """
    path = config_file()
    if not path.exists():
        return {}
    remedy = "mend or remove the file, or name another folder in KERAS_HOME"
    try:
        values = json.loads(path.read_text())
    except OSError as error:
        raise T2TError(f"{path}, which Keras reads: {error.strerror}: {remedy}") from error
    except ValueError:
        return {}
    if not isinstance(values, dict):
        raise T2TError(f"{path}, which Keras reads, is no JSON object: {remedy}")
    for name, value in values.items():
        known = KNOWN.get(name)
        if known and not (isinstance(value, known) if isinstance(known, type) else value in known):
            allowed = "a number such as 1e-07" if isinstance(known, type) else f"one of {', '.join(known)}"
            raise T2TError(f"{path}: {name} is {value!r}, which Keras refuses: write {allowed}")
    return values


def _is_installed(name: str) -> bool:
    return name in OF_KERAS and importlib.util.find_spec(name) is not None


def _check_supported(name: str) -> None:
    if name not in SUPPORTED:
        raise T2TError(
            f"{BACKEND}={name}: models run with {' or '.join(SUPPORTED)}: set {BACKEND} to one of them, "
            "before Keras is imported"
        )


@contextmanager
def _with_valid_file(module: ModuleType) -> Iterator[None]:
    _in_file()
    yield


@contextmanager
def _configured(module: ModuleType) -> Iterator[None]:
    """Imports Keras with the chosen backend, and in a command with the precision that it needs.

    The environment is as before then, for the processes that this one starts.
    """
    name, before = _choose(), os.environ.get(BACKEND)
    if _Process.is_command:
        _check_supported(name)
    if name in OF_KERAS and not _is_installed(name):
        raise T2TError(f"{BACKEND}={name}: {name} is not installed: pip install {name}")
    os.environ[BACKEND] = name
    try:
        yield
    except Exception as error:
        fault = " ".join(str(error).split())
        raise T2TError(
            f"Keras does not start with its backend {name}: {fault}; look at {config_file()} and at the "
            "variables KERAS_*"
        ) from error
    finally:
        if before is None:
            del os.environ[BACKEND]
        else:
            os.environ[BACKEND] = before
    if _Process.is_command:
        module.config.set_floatx(FLOATX)
        module.config.set_epsilon(EPSILON)
