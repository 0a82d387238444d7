"""Memory that is freed: what glibc does with it. With another C library, all of this does nothing."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST_KEPT_BLOCK = 32 * 2**20  # bytes; the most that glibc itself goes up to, in a 64-bit process
LARGEST_SMALL_BLOCK = 128 * 2**10  # bytes; where glibc begins


def keep_freed_memory() -> None:
    """Lets freed blocks of up to 32 MB be used again without the kernel, as glibc does by itself in time."""
    _set({M_MMAP_THRESHOLD: LARGEST_KEPT_BLOCK, M_TRIM_THRESHOLD: 2 * LARGEST_KEPT_BLOCK})


@contextmanager
def returning_freed_memory() -> Iterator[None]:
    """Returns blocks that are freed in the block to the kernel, as those of weights that are converted."""
    _set({M_MMAP_THRESHOLD: LARGEST_SMALL_BLOCK})
    try:
        yield
    finally:
        keep_freed_memory()


def _set(thresholds: dict[int, int]) -> None:
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        for parameter, threshold in thresholds.items():
            mallopt(parameter, threshold)
