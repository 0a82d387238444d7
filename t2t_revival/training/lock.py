"""The lock of an output_dir, which one trainer at a time holds.

It is a lock of the kernel, so it ends with its process, also when that is killed. Over NFS it holds between
machines if the server has locks, as version 4 does; on a file system without locks it rejects nobody.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from t2t_revival.utils.files import lock, writing

FILE_NAME = ".training.lock"  # is never removed after a training; without a process it locks nothing


@contextmanager
def output_dir_lock(output_dir: Path) -> Iterator[None]:
    """Holds the lock of `output_dir` against other trainers; commands that only read may run meanwhile.

    A missing folder is created, and removed again if nothing was written into it.

    Raises:
        T2TError: another trainer holds the lock, or the folder cannot be written.
    """
    created = [folder for folder in (output_dir, *output_dir.parents) if not folder.exists()]
    with writing(f"to output_dir {output_dir}"):
        output_dir.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(output_dir / FILE_NAME, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        lock(descriptor, _rejection(output_dir))
        try:
            yield
        finally:
            if created:
                _remove_empty(output_dir, created)
    finally:
        os.close(descriptor)


def check_free(output_dir: Path) -> None:
    """Checks that no trainer holds the lock of `output_dir`; many processes may check at the same time.

    Raises:
        T2TError: one does.
    """
    try:
        descriptor = os.open(output_dir / FILE_NAME, os.O_RDWR)
    except OSError:  # not there yet, or not writable, which `output_dir_lock` reports
        return
    try:
        lock(descriptor, _rejection(output_dir), shared=True)
    finally:
        os.close(descriptor)


def _rejection(output_dir: Path) -> str:
    return (
        f"{output_dir} is in use by another t2t-trainer: wait until it ends, or give another --output_dir "
        "(t2t-decoder and the other commands can read it meanwhile)"
    )


def _remove_empty(output_dir: Path, created: list[Path]) -> None:
    if os.listdir(output_dir) != [FILE_NAME]:
        return
    (output_dir / FILE_NAME).unlink()
    with suppress(OSError):  # not empty: another process wrote something there
        for folder in created:
            folder.rmdir()
