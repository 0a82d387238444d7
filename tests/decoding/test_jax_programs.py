"""Programs of JAX's search: compiled before batches of their shapes come."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from t2t_revival import HParams, Transformer, Translator
from t2t_revival.decoding.engine import Inputs, SearchSettings
from t2t_revival.decoding.engines import jax_engine as module
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.utils import keras_config
from tests.support.jax_process import JaxProcess
from tests.support.searches import counted_traces, jax_engine

TINY = HParams(num_hidden_layers=1, hidden_size=8, filter_size=16, num_heads=2)
MANY = [90, *[1] * 20, 30, 3]
SETTINGS = SearchSettings(2, 2, 1, {"alpha": 0.6}, {})


def join_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == module.COMPILING:
            thread.join()


@pytest.mark.parametrize(("words", "cores"), [(MANY, 16), (MANY, 2), ([1] * 20, 16)])
def test_programs_of_batches_to_come_are_compiled_beside(
    words: list[int], cores: int, vocabulary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program(sources: np.ndarray, *_: Any) -> tuple[np.ndarray, np.ndarray, int]:
        return np.ones((len(sources), 1, 1), np.int32), np.zeros((len(sources), 1), np.float32), 1

    called = Mock(side_effect=program)
    monkeypatch.setattr(keras_config, "backend", lambda: "jax")
    monkeypatch.setattr(module, "JaxProgram", lambda *_, **__: called)
    monkeypatch.setattr(module, "cores", lambda: cores)
    options = DecodeHParams(beam_size=2, extra_length=1, batch_size=1024)
    translator = Translator(Transformer(TINY, vocabulary.size), vocabulary, options)
    assert len(translator.translate(["a " * count for count in words])) == len(words)
    join_threads()
    shapes = [*dict.fromkeys(call.args[0].shape for call in called.call_args_list)]
    compiled = [call.args[0].shape for call in called.compile.call_args_list]
    assert compiled == (shapes[1:] if cores > 2 else [])
    assert len(shapes) > 1


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("jax"), reason="needs JAX")
def test_what_was_compiled_beside_is_not_made_again() -> None:
    assert JaxProcess(numbers_of_programs)() == (1, 2)


def numbers_of_programs() -> tuple[int, int]:
    """Returns the programs that are made beside, and all, for batches of two widths."""
    engine = jax_engine(Transformer(TINY, 11))
    module.cores = lambda: 16
    with counted_traces() as traces:
        engine.expect([[40] * 9, [20] * 9], SETTINGS)
        join_threads()
        beside = traces["programs"]
        for width in (40, 20):
            engine.search(Inputs(np.full((9, width), 5, np.int32), SETTINGS))
    return beside, traces["programs"]
