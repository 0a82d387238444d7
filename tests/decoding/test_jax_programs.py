"""Programs of JAX's search: one for each width of sources, compiled before lines of that width come."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace
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


@pytest.mark.parametrize(
    ("words", "cores", "widths", "beside"),
    [(MANY, 16, 3, 2), (MANY, 2, 3, 0), ([1] * 20, 16, 1, 0), ([90, 1], 16, 2, 0)],
)
def test_programs_of_widths_that_come_later_are_compiled_beside(
    words: Any, cores: int, widths: int, beside: int, vocabulary: Any, monkeypatch: Any
) -> None:
    def program(sources: np.ndarray, *_: Any) -> tuple[np.ndarray, np.ndarray, int]:
        return np.ones((len(sources), 1, 1), np.int32), np.zeros((len(sources), 1), np.float32), 1

    def shapes(asked: Mock) -> set[tuple[int, int]]:
        return {call.args[0].shape for call in asked.call_args_list}

    called = Mock(side_effect=program)
    monkeypatch.setattr(keras_config, "backend", lambda: "jax")
    monkeypatch.setattr(module, "JaxProgram", lambda *_, **__: called)
    monkeypatch.setattr(module, "Thread", lambda target, args: SimpleNamespace(start=lambda: target(*args)))
    monkeypatch.setattr(module, "cores", lambda: cores)
    options = DecodeHParams(beam_size=2, extra_length=1, batch_size=2048)
    translator = Translator(Transformer(TINY, vocabulary.size), vocabulary, options)
    assert len(translator.translate(["a " * count for count in words])) == len(words)
    assert len(shapes(called)) == widths
    assert shapes(called.compile) == {*sorted(shapes(called), key=lambda shape: shape[1])[:beside]}


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("jax"), reason="needs JAX")
def test_what_was_compiled_beside_is_not_made_again() -> None:
    assert JaxProcess(programs_of_two_widths)() == 2


def programs_of_two_widths() -> int:
    engine = jax_engine(Transformer(TINY, 11))
    module.cores = lambda: 16
    with counted_traces() as traces:
        engine.expect([40] * 9 + [20] * 9, SETTINGS)
        for width in (40, 20):
            engine.search(Inputs(np.full((9, width), 5, np.int32), SETTINGS))
    return traces["programs"]
