"""A process in which Keras is on JAX, and which has no TensorFlow; it answers requests until its end."""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.backend_process import IN_JAX

ROOT = Path(__file__).parents[2]
PROGRAM = """
from tests.support.without_tensorflow import block_tensorflow

block_tensorflow()
from tests.support.jax_process import answer_with
from {module} import {name}

answer_with({name})
"""


class JaxProcess:
    """Starts the process, whose call returns what a function of a module returns there.

    Args:
        function: of any arguments that can be pickled.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(module=function.__module__, name=function.__name__)],
            env={**os.environ, **IN_JAX, "KERAS_BACKEND": "jax", "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        atexit.register(self._process.kill)

    def __call__(self, *arguments: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        try:
            pickle.dump(arguments, self._process.stdin)
            self._process.stdin.flush()
            is_error, found = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError) as error:
            self._log.seek(0)
            raise AssertionError(self._log.read().decode()[-3000:]) from error
        assert not is_error, found
        return found


def answer_with(function: Callable[..., Any]) -> None:
    """Answers requests by a function, until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what JAX may print
    while True:
        try:
            arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = False, function(*arguments)
        except Exception:
            answer = True, traceback.format_exc()
        pickle.dump(answer, answers)
        answers.flush()
