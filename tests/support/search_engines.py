"""The engines that answer a search, and what each cannot do and why.

`engines("prefixes")` are the parameters of a test that holds those to an oracle of prefixes.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

ENGINES = ("tensorflow", "exported", "fixed", "jax", "ctranslate2", "litert")
ONE_SETTING = "a call has one setting for all its sentences"
NO_CONTROL = "outputs are not controlled on this engine"
NO_LAYER = "this engine has no such layer"
_FIXED = dict.fromkeys(
    ("prefixes", "phrases", "trees", "guards", "samples", "frozen", "scores"), NO_CONTROL
) | {"settings": ONE_SETTING}
RESTRICTED = ("ctranslate2",)  # engines whose probabilities are among tokens but PAD, and EOS at once
CANNOT: dict[str, dict[str, str]] = {
    "tensorflow": {"settings": ONE_SETTING},
    "exported": {
        "phrases": "clients of an export spell them: tests/serving/test_phrases.py",
        "samples": "an export draws other random numbers: tests/serving",
        "frozen": "an export's weights always are",
        "scores": "an export scores texts: tests/serving",
        "programs": "an export is one",
    },
    "fixed": _FIXED | {"programs": "JAX makes them"},
    "jax": _FIXED | {"ensemble": "the process of tests has one model"},
    "ctranslate2": {
        **dict.fromkeys(("phrases", "trees", "samples"), NO_CONTROL),
        **dict.fromkeys(("attention_window", "ssru", "words", "key_channels", "ensemble"), NO_LAYER),
        "settings": ONE_SETTING,
        "prefixes": "EOS does not come at once after them: test_ctranslate2_engine.py",
        "t2t": "it stops when beam_size hypotheses are finished",
        "early_stopping": "it has a rule of its own",
        "programs": "it makes none",
        "empty": "an empty source has an empty output",
        "frozen": "its weights always are",
        "guards": "its scores leave out what guards change: test_ctranslate2_engine.py",
        "banned": "UNK alone is: test_unknown.py",
    },
    "litert": _FIXED
    | {
        "ensemble": NO_LAYER,
        "words": NO_LAYER,
        "programs": "it makes none",
        "spare": "an export has one output or beam_size",
        "empty": "its interpreter has no tensors without elements",
        "wide": "its beam has at most 100 hypotheses",
        "banned": "UNK alone is: test_unknown.py",
    },
}
_MARKS = {
    "jax": [
        pytest.mark.slow,
        pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs JAX"),
    ],
    "ctranslate2": [
        pytest.mark.slow,
        pytest.mark.skipif(importlib.util.find_spec("ctranslate2") is None, reason="needs CTranslate2"),
    ],
    "litert": [pytest.mark.slow, pytest.mark.nightly],  # seconds for each conversion
}


def engines(*needs: str) -> list[Any]:
    """Returns the engines that can do all of these, as parameters of a test."""
    return [
        pytest.param(engine, marks=_MARKS.get(engine, ()))
        for engine in ENGINES
        if not set(needs) & CANNOT[engine].keys()
    ]
