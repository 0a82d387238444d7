"""Python processes that work for another one, leave Ctrl-C and SIGHUP to it and end with it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from t2t_revival.errors import T2TError


@contextmanager
def without_main_script(pickled: bytes) -> Iterator[None]:
    """Context in which processes of `multiprocessing` are started that do not run the main script again.

    They would import it to find what it defines, and a script without `if __name__ == "__main__":` would do
    all its work in each of them. It is needed only where something that they get is defined in it.

    Args:
        pickled: what they get. Where it names something of the script, they import the script after all.
    """
    main: dict[str, Any] = vars(sys.modules["__main__"])
    if b"__main__" in pickled:
        yield
        return
    hidden: dict[str, Any] = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


def follow_parent() -> None:
    """Makes this process, one of `multiprocessing`, ignore Ctrl-C and SIGHUP and end when its parent does."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def run_in_child(work: str, function: Callable[..., None], *arguments: Any) -> None:
    """Calls a function in a new process, whose memory goes with it.

    Args:
        work: what it does, for messages.
        function: of a module, as pickle needs it.
        *arguments: of the function.

    Raises:
        T2TError: the process was killed. Or what the function raises.
    """
    processes = multiprocessing.get_context("spawn")
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=_call, args=(sender, function, arguments), daemon=True)
    with without_main_script(pickle.dumps(arguments)):
        process.start()
    sender.close()
    try:
        fault = receiver.recv()
    except EOFError as error:
        raise T2TError(f"{work} was killed, as where memory is short: free some, and try again") from error
    finally:
        process.kill()
        process.join()
    if fault:
        raise fault


def _call(sender: Any, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    follow_parent()
    try:
        function(*arguments)
    except Exception as error:
        sender.send(error)
        return
    sender.send(None)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
