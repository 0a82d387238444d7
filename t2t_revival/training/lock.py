"""One trainer for each output_dir.

The lock is the kernel's: it ends with the process that holds it, whatever ends that. Over NFS it holds
between machines where the server has locks (version 4 does); a file system without any refuses nobody.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from t2t_revival.errors import T2TError
from t2t_revival.files import lock

FILE_NAME = ".training.lock"  # stays where it is; it means nothing unless a process holds it


@contextmanager
def only_trainer(output_dir: Path) -> Iterator[None]:
    """Inside, no other trainer works in `output_dir`; commands that read it do.

    The folder is made where it is missing, and goes again if nothing came into it.

    Raises:
        T2TError: another trainer works there, or the folder cannot be written.
    """
    made = [folder for folder in (output_dir, *output_dir.parents) if not folder.exists()]
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(output_dir / FILE_NAME, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise T2TError(f"cannot write to output_dir {output_dir}: {error.strerror or error}") from error
    try:
        lock(descriptor, _refusal(output_dir))
        try:
            yield
        finally:
            if made:
                _remove_empty(output_dir, made)
    finally:
        os.close(descriptor)


def check_free(output_dir: Path) -> None:
    """Checks that no trainer works in `output_dir` now; many may check it at the same time.

    Raises:
        T2TError: one does.
    """
    try:
        descriptor = os.open(output_dir / FILE_NAME, os.O_RDWR)
    except OSError:  # never trained there, or not to be written: the trainer says so
        return
    try:
        lock(descriptor, _refusal(output_dir), shared=True)
    finally:
        os.close(descriptor)


def _refusal(output_dir: Path) -> str:
    return (
        f"{output_dir}: another t2t-trainer is at work there; wait for it, or give another --output_dir "
        "(t2t-decoder and all else may use it meanwhile)"
    )


def _remove_empty(output_dir: Path, made: list[Path]) -> None:
    if os.listdir(output_dir) != [FILE_NAME]:
        return
    (output_dir / FILE_NAME).unlink()
    with suppress(OSError):  # not empty: somebody else put something there
        for folder in made:
            folder.rmdir()
