"""Processes that kill themselves while a file of outputs is half done: no test has to hit the moment."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any
from unittest import mock

from t2t_revival.decoding.files import part_file


def killed_with_lines(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function that is killed when FILE.part has its first line, but not all, and half of another."""
    write = part_file._PartFile.write

    def write_and_die(file: Any, result: bytes) -> None:
        if 0 < file._done < file._total:
            file.stream.write(result[: len(result) // 2])
            file.stream.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        write(file, result)

    with mock.patch.object(part_file._PartFile, "write", write_and_die):
        return function(*arguments)


def on_one_core(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function that may use one core, and so decodes one batch after the other."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return function(*arguments)
