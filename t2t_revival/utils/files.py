"""Files that are there whole or not at all, locks, and lines of text."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from t2t_revival.errors import T2TError

BYTE_ORDER_MARK = "\ufeff"
NO_LOCKS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def temporary_name(path: Path) -> Path:
    """What a file is called while it is written: hidden, in the same folder."""
    return path.with_name(f".{path.name}.tmp")


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Opens `path` for writing under a temporary name; it gets its own name when all is on the disk.

    Raises:
        OSError: it cannot be written; what was there before is untouched, and nothing is left behind.
    """
    temporary = temporary_name(path)
    try:
        with temporary.open("wb") as file:
            yield file
            put_in_place(file, temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def put_in_place(file: BinaryIO, written: Path, path: Path, mtime_ns: int | None = None) -> None:
    """Gives a file its name when its content is on the disk.

    Args:
        file: open for writing.
        written: its name until now, in the same folder.
        path: its name from now on; what was there before is replaced.
        mtime_ns: its modification time, nanoseconds since 1970; None: stays as it is.

    Raises:
        OSError: it cannot be written; what was there before is untouched.
    """
    file.flush()
    if mtime_ns is not None:
        os.utime(file.fileno(), ns=(mtime_ns, mtime_ns))
    os.fsync(file.fileno())
    written.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(descriptor: int, refusal: str, shared: bool = False) -> None:
    """Locks an open file or folder for this process, until it is closed or the process ends.

    Where the file system has no locks, or none for folders as NFS, nothing is locked and nobody refused.

    Args:
        descriptor: of what is locked.
        refusal: what is said where that cannot be.
        shared: whether others may lock it too, if they share it.

    Raises:
        T2TError: another process holds the lock; says `refusal`.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise T2TError(refusal) from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


@contextmanager
def only_one(folder: Path, refusal: str) -> Iterator[None]:
    """Inside, no other process is inside for the same folder; see `lock`.

    Raises:
        T2TError: one is; says `refusal`.
        OSError: there is no such folder.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        lock(descriptor, refusal)
        yield
    finally:
        os.close(descriptor)


def check_apart(inputs: Mapping[str, Path | int], outputs: Mapping[str, Path | int]) -> None:
    """Checks that no output is an input, however it is spelt, and through symbolic and hard links.

    Args:
        inputs: paths, or descriptors of open files, by the name that an error gives them, as in
            "--decode_from_file=in.en". What does not exist, or is not a regular file, cannot be overwritten.
        outputs: likewise.

    Raises:
        T2TError: an output is an input.
    """
    read = {_identity(file): name for name, file in inputs.items()}
    for name, file in outputs.items():
        identity = _identity(file)
        if identity and identity in read:
            raise T2TError(f"{name} would overwrite {read[identity]}: they are the same file; name another")


def _identity(file: Path | int) -> tuple[int, int] | None:
    """Device and inode of a regular file."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def is_file_name(name: str) -> bool:
    """Whether a name that was read somewhere stays in the folder where it is put, and on its line."""
    return name.isprintable() and name not in ("", ".", "..") and not set(name) & set('/\\"')


def check_file_name(path: Path) -> None:
    """Checks that a file may lie under its own name in another folder, and be named in a file there.

    Raises:
        T2TError: see `is_file_name`.
    """
    if not is_file_name(path.name):
        raise T2TError(f"{path}: {path.name!r} cannot be the name of a copy of it; rename it")


def text_lines(content: bytes, where: str) -> list[str]:
    """The lines of UTF-8 text, without line ends and byte order mark; only a line feed ends a line.

    Args:
        content: the text.
        where: names it in an error.

    Raises:
        T2TError: it is not UTF-8; names the line.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise T2TError(f"{where}: line {number} is not UTF-8 text: convert the file to UTF-8") from error
    lines = text.removeprefix(BYTE_ORDER_MARK).split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
