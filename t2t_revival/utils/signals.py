"""SIGTERM as an exception."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from t2t_revival.errors import Terminated


@contextmanager
def terminable() -> Iterator[None]:
    """Makes SIGTERM raise `Terminated`, in the main thread only: no other thread receives signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _terminate(number: int, frame: Any) -> NoReturn:
    raise Terminated
