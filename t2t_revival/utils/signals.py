"""Signals that ask a process to end, as exceptions."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from t2t_revival.errors import HungUp, Terminated

INTERRUPTIONS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated, signal.SIGHUP: HungUp}
Handler = Callable[[int, FrameType | None], Any]


def ending_signals() -> tuple[signal.Signals, ...]:
    """Returns the signals that ask to end: of Ctrl-C, of schedulers, and of a terminal that is gone.

    The last one, SIGHUP, is left out where it is ignored, as under nohup.
    """
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGINT, signal.SIGTERM, *hangup)


@contextmanager
def handling(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Installs handlers for the block, of those of `ending_signals`.

    Python delivers signals to the main thread only; in any other thread nothing is handled.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in ending_signals() if number in handlers]
    before = {number: signal.signal(number, handlers[number]) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


@contextmanager
def terminable() -> Iterator[None]:
    """Makes SIGTERM raise `Terminated` in the block, and SIGHUP `HungUp`; see `handling`."""
    with handling({signal.SIGTERM: _terminate, signal.SIGHUP: _hang_up}):
        yield


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _hang_up(number: int, frame: FrameType | None) -> NoReturn:
    """Raises `HungUp` once: shell, kernel and session manager each send a signal when a terminal is gone."""
    for repeated in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(repeated, lambda *_: None)
    raise HungUp
