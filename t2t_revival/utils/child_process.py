"""Python processes that work for another one, leave Ctrl-C and SIGHUP to it and end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
