"""`Prefetch`: batches are made and copied to the device in a thread of their own, ahead of time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class Prefetch:
    """An iterator over `place(element)` of each element, which a thread computes in advance.

    Args:
        elements: endless.
        place: called with each.
        ahead: how many are made in advance.
    """

    def __init__(self, elements: Iterator[Any], place: Callable[[Any], Any], ahead: int) -> None:
        self._thread = ThreadPoolExecutor(1, "batches")
        self._make = lambda: place(next(elements))
        self._ready = deque(self._thread.submit(self._make) for _ in range(ahead))

    def __next__(self) -> Any:
        """Returns the next one; raises the error that ended the elements."""
        self._ready.append(self._thread.submit(self._make))
        return self._ready.popleft().result()

    def close(self) -> None:
        """Ends the thread, and waits for it."""
        self._thread.shutdown(cancel_futures=True)
