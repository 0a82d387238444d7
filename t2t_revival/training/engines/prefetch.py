"""`Prefetch`: batches are made and copied to the device in a thread of their own, ahead of time."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

END_SECONDS = 0.1  # between two looks whether the thread is to end


class Prefetch:
    """An iterator over `place(element)` of each element, which a thread computes in advance.

    Args:
        elements: endless.
        place: called with each.
        ahead: how many are made in advance.
    """

    def __init__(self, elements: Iterator[Any], place: Callable[[Any], Any], ahead: int) -> None:
        self._elements, self._place = elements, place
        self._ready: queue.Queue[Any] = queue.Queue(ahead)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="batches", daemon=True)
        self._thread.start()

    def __next__(self) -> Any:
        """Returns the next one; raises the error that ended the elements."""
        item = self._ready.get()
        if isinstance(item, Exception):
            self._put(item)  # the next call raises it too
            raise item
        return item

    def close(self) -> None:
        """Ends the thread, and waits for it."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._put(self._place(next(self._elements)))
        except Exception as error:
            self._put(error)

    def _put(self, item: Any) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(queue.Full):
                self._ready.put(item, timeout=END_SECONDS)
                return
