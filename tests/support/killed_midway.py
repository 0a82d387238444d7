"""Processes that kill themselves while a file of outputs is half done: no test has to hit the moment."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

from t2t_revival.decoding import outputs


def killed_with_results(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function that is killed when the first batch of several is kept, wherever its lines are."""
    return _killed(lambda file: 0 < file._done < file._total, function, *arguments)


def killed_with_lines(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function that is killed when FILE.part has its first lines, but not all."""
    return _killed(lambda file: 0 < file._written < file._total, function, *arguments)


def on_one_core(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function that may use one core, and so decodes one batch after the other."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return function(*arguments)


def _killed(is_midway: Callable[[Any], bool], function: Callable[..., Any], *arguments: Any) -> Any:
    add = outputs._PartFile.add

    def add_and_die(file: Any, results: Mapping[int, Any]) -> None:
        add(file, results)
        if is_midway(file):
            os.kill(os.getpid(), signal.SIGKILL)

    with mock.patch.object(outputs._PartFile, "add", add_and_die):
        return function(*arguments)
