"""Keras's configuration: the environment is obeyed or an error, keras.json is read as Keras reads it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from t2t_revival import T2TError
from t2t_revival.utils import keras_config

SetFile = Callable[[str], None]
DIR = "jax_compilation_cache_dir"


@pytest.fixture
def set_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SetFile:
    """Writes keras.json of a process that has not imported Keras, is a command, and has TensorFlow alone."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.setattr(keras_config, "_needed", None)
    found = {"tensorflow": True, "jax": None, "torch": True}
    monkeypatch.setattr(importlib.util, "find_spec", found.get)
    return lambda text: (tmp_path / "keras.json").write_text(text) and None


TENSORFLOW, JAX = {"tensorflow": True, "torch": True}, {"jax": True}


@pytest.mark.parametrize(
    ("text", "installed", "backend"),
    [
        *(
            (text, TENSORFLOW, "tensorflow")
            for text in ("", "{", "{}", "[1]", '{"backend": 3}', '{"floatx": "float16"}')
        ),
        *(
            (f'{{"backend": "{name}"}}', TENSORFLOW, "tensorflow") for name in ("jax", "torch")
        ),  # which must run
        ('{"backend": "jax"}', TENSORFLOW | JAX, "jax"),
        (None, TENSORFLOW, "tensorflow"),
        (None, JAX, "jax"),
    ],
)
def test_a_file_is_read_as_keras_reads_it(
    set_file: SetFile, monkeypatch: pytest.MonkeyPatch, text: str | None, installed: dict, backend: str
) -> None:
    if text is not None:
        set_file(text)
    monkeypatch.setattr(importlib.util, "find_spec", installed.get)
    assert keras_config.backend() == backend


@pytest.mark.parametrize("name", ["torch", "tensorfow"])
def test_the_environment_is_the_users_word(
    set_file: SetFile, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", name)
    for ask in (keras_config.backend, lambda: keras_config.need("tensorflow")):
        with pytest.raises(T2TError, match=f"KERAS_BACKEND={name}: models run with tensorflow or jax"):
            ask()
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert keras_config.backend() == "jax"


def test_a_command_for_tensorflow_alone_says_once_that_it_takes_it(
    set_file: SetFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert [keras_config.need("tensorflow") for _ in range(2)] == ["jax", None]
    assert keras_config.backend() == "tensorflow"


@pytest.mark.parametrize("chosen", [{}, {DIR: "x"}, {"jax_enable_compilation_cache": False}])
def test_programs_are_kept_unless_jax_has_a_choice(
    chosen: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be made is no error."""
    jax = pytest.importorskip("jax")
    config = SimpleNamespace(values={DIR: None, "jax_enable_compilation_cache": True, **chosen})
    config.update = config.values.__setitem__
    monkeypatch.setattr(jax, "config", config)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    keras_config.keep_programs()
    assert config.values[DIR] == chosen.get(DIR)
    (tmp_path / "file").unlink()
    keras_config.keep_programs()
    made = str(tmp_path / "file" / "t2t_revival" / "compiled")
    assert config.values[DIR] == (chosen.get(DIR) if chosen else made)
