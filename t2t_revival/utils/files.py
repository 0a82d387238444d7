"""Files that are written completely or not at all, locks, and lines of text."""

from __future__ import annotations

import errno
import fcntl
import gzip
import io
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from t2t_revival.errors import T2TError

BYTE_ORDER_MARK = "\ufeff"
GZIP = b"\x1f\x8b"  # begins what gzip has packed, and no UTF-8 text
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
PATTERN = re.compile(r"\[.*\]|\\", re.DOTALL)  # of TensorFlow's GetMatchingPaths; * and ? match themselves
DESCRIPTORS = re.compile("/proc/[0-9]+/(task/[0-9]+/)?fd")  # the folder of a process's open files
NO_HOME = "this user has no home folder, which ~ and default folders need: set HOME"
REMOVALS = 100  # of a folder by other processes, after which it is a fault
NO_LOCKS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def path_of(value: object, what: str) -> Path:
    """Returns a path that Python code passes as a string or a path; ~ is the home folder.

    Args:
        value: from Python code.
        what: it is, for errors.

    Raises:
        T2TError: it is of another type, empty, a URL, or begins with ~ where there is no such home folder.
    """
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise T2TError(f"{what}={value!r} is not a path: give a string or a Path")
    if fault := url_fault(os.fspath(value)):
        raise T2TError(f"{what}={fault}")
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        reason = "it begins with the name of no user: write all of it" if has_home() else NO_HOME
        raise T2TError(f"{what}={os.fspath(value)}: {reason}") from error


def has_home() -> bool:
    """Returns whether this user has a home folder, which ~ stands for."""
    return os.path.expanduser("~") != "~"


def cache_folder() -> Path:
    """Returns the folder t2t_revival of XDG_CACHE_HOME, or of ~/.cache, which need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "t2t_revival"


def url_fault(value: str) -> str | None:
    """Describes the fault of a path that is a URL, which would become a folder here; `None` if it is none."""
    scheme = URL.match(value)
    if not scheme:
        return None
    if scheme[0] == "file://":
        return f"{value}: must be a path, not a URL: give {value.removeprefix(scheme[0])}"
    return f"{value}: must be a path, not a URL; mount it (by NFS or Cloud Storage FUSE) and give that path"


def check_utf8(path: Path, library: str, remedy: str) -> None:
    """Checks that a library can take a path, which must be UTF-8; errors end with the remedy.

    Raises:
        T2TError: the path is not, as one of an older system may be.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise T2TError(f"{path}: {library} takes no path that is not UTF-8: {remedy}") from error


def check_for_tensorflow(path: Path, remedy: str) -> None:
    """Checks that TensorFlow, which takes paths of models for patterns, can load one from a folder.

    Raises:
        T2TError: it cannot; ends with the remedy.
    """
    check_utf8(path, "TensorFlow", remedy)
    if any(PATTERN.search(part) for part in path.parts):
        raise T2TError(f"{path}: TensorFlow loads no model from a path with [] or \\ in it: {remedy}")


def temporary_name(path: Path) -> Path:
    """The hidden name of a file while it is written, in the same folder."""
    return path.with_name(f".{path.name}.tmp")


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Opens `path` for writing under a temporary name; it gets its own name when everything is on the disk.

    Of several processes that write the same file, one waits for another. A device, a pipe or an open file
    (`is_special`) is written as it is.

    Raises:
        OSError: the file cannot be written; an earlier one is untouched, and nothing is left behind.
    """
    if is_special(path):
        with open_special(path) as file:
            yield file
        return
    temporary = temporary_name(path)
    try:
        with _open_alone(temporary) as file:
            yield file
            put_in_place(file, temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes | bytearray) -> None:
    """Writes a file as `atomic_write` does."""
    with atomic_write(path) as file:
        file.write(content)


def _open_alone(temporary: Path) -> BinaryIO:
    """Opens an empty file; waits while another process writes it, and opens a new one after it is renamed."""
    while True:
        file = os.fdopen(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "wb")
        lock(file.fileno(), None)
        if is_at(file.fileno(), temporary):
            file.truncate()
            return file
        file.close()


def is_at(descriptor: int, path: Path) -> bool:
    """Returns whether an open file or folder is still the one that a path names."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def buffered_write(path: Path) -> Iterator[io.BytesIO]:
    """Opens a file that is written when the block ends; fails at once where it cannot be written.

    An `OSError` of the block passes through, since it is of another file.

    Raises:
        T2TError: the file cannot be written.
    """
    check_no_folder(path)
    content = io.BytesIO()
    with ExitStack() as stack:
        with writing(path):
            file = stack.enter_context(atomic_write(path))
        yield content
        with writing(path):
            file.write(content.getvalue())
            stack.close()


def descriptor_of(path: Path) -> int | None:
    """Returns the descriptor of an open file that a path names, as /dev/stdout and /dev/fd/3; else `None`."""
    while True:
        if DESCRIPTORS.fullmatch(os.path.realpath(path.parent)) and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)


def is_special(path: Path) -> bool:
    """Returns whether a path is a device, a pipe or an open file: none that another file could replace."""
    return descriptor_of(path) is not None or (path.exists() and not (path.is_file() or path.is_dir()))


def check_no_folder(path: Path) -> None:
    if path.is_dir():
        raise T2TError(f"cannot write {path}: not a file")


def open_special(path: Path) -> BinaryIO:
    """Opens a device, pipe or open file for writing; of a pipe, it waits for a reader.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = descriptor_of(path)
    return path.open("wb") if descriptor is None else os.fdopen(os.dup(descriptor), "wb")


@contextmanager
def writing(what: object, remedy: str = "") -> Iterator[None]:
    """Turns an `OSError` of the block into the error that `what` cannot be written.

    Raises:
        T2TError: in place of the `OSError`; ends with the remedy.
        BrokenPipeError: nobody reads the pipe any more.
    """
    try:
        yield
    except BrokenPipeError as error:
        raise BrokenPipeError(error.errno, error.strerror, str(what)) from error
    except OSError as error:
        reason = f"cannot write {what}: {error.strerror or error}"
        raise T2TError(f"{reason}; {remedy}" if remedy else reason) from error


def check_writable(folder: Path) -> None:
    """Checks that files can be written into a folder, or that it can be made, before work for them."""
    place = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    with writing(folder, "mend the folder's permissions"), tempfile.TemporaryFile(dir=place):
        return


def put_in_place(file: BinaryIO, written: Path, path: Path, mtime_ns: int | None = None) -> None:
    """Renames an open file from `written` to `path`, in the same folder, when its content is on the disk.

    An earlier file of this name is replaced. `mtime_ns` is the new modification time in nanoseconds since
    1970; `None` leaves it unchanged.

    Raises:
        OSError: the file cannot be written; an earlier one is untouched.
    """
    file.flush()
    if mtime_ns is not None:
        os.utime(file.fileno(), ns=(mtime_ns, mtime_ns))
    os.fsync(file.fileno())
    written.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(
    descriptor: int, refusal: str | None, shared: bool = False, on_wait: Callable[[], object] = lambda: None
) -> None:
    """Locks an open file or folder for this process, until it is closed or the process ends.

    On a file system without locks, or without locks of folders as NFS, nothing is locked and no error raised.
    Several processes can hold a shared lock.

    Raises:
        T2TError: another process holds the lock; the message is `refusal`. With `None` this one waits for it,
            after a call of `on_wait`.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError as error:
        if refusal is not None:
            raise T2TError(refusal) from error
        on_wait()
        fcntl.flock(descriptor, kind)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


@contextmanager
def exclusive_lock(
    folder: Path, refusal: str | None, on_wait: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Locks a folder for the block; see `lock`. It is created, again where another process has removed it.

    Raises:
        T2TError: as `lock`.
        OSError: the folder cannot be created or read.
    """
    while True:
        make_folder(folder)
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            lock(descriptor, refusal, on_wait=on_wait)
            if is_at(descriptor, folder):
                yield
                return
        finally:
            os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Creates a folder and its parents, of which other processes may remove empty ones meanwhile.

    Raises:
        OSError: it cannot be created.
    """
    for _ in range(REMOVALS):
        with suppress(FileNotFoundError):
            folder.mkdir(parents=True, exist_ok=True)
            return
    folder.mkdir(parents=True, exist_ok=True)


def check_apart(inputs: Mapping[str, Path | int], outputs: Mapping[str, Path | int]) -> None:
    """Checks that no output is an input, however it is spelt, and through symbolic and hard links.

    Both are paths, or descriptors of open files, by their names for errors, as in "--decode_from_file=in.en".
    Only regular files are checked.
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
    """Checks that a name from outside is a plain file name, without a folder or a line end."""
    return name.isprintable() and name not in ("", ".", "..") and not set(name) & set('/\\"')


def check_file_name(path: Path) -> None:
    """Checks that a copy of a file can have the same name; see `is_file_name`."""
    if not is_file_name(path.name):
        raise T2TError(f"{path}: a copy cannot have the name {path.name!r}: rename the file")


def file_lines(path: Path, name: str = "") -> list[str]:
    """Reads the lines of a text file, which may be packed by gzip; see `text_lines`.

    Errors begin with the name; without one, with the path.

    Raises:
        T2TError: it cannot be read, or unpacked, or is not UTF-8.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise T2TError(f"{name or path}: {error.strerror or error}") from error
    return text_lines(content, name or str(path))


@contextmanager
def unpacking(where: object) -> Iterator[None]:
    """Turns the errors of gzip in the block into a `T2TError`, which begins with `where`."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise T2TError(f"{where}: corrupt gzip file: {error}; put a valid copy back") from error


def text_lines(content: bytes, where: str) -> list[str]:
    """Splits UTF-8 text into lines, without line ends and byte order mark; only a line feed ends a line.

    Content that gzip has packed is unpacked, whatever its name; that of a file named .gz must be.

    Args:
        content: of a file.
        where: the file's name, for errors, which begin with it.

    Raises:
        T2TError: a line is not UTF-8, or packed content is corrupt.
    """
    if content.startswith(GZIP) or where.endswith(".gz"):
        with unpacking(where):
            content = gzip.decompress(content)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise T2TError(f"{where}: line {number} is not UTF-8 text: convert the file to UTF-8") from error
    lines = text.removeprefix(BYTE_ORDER_MARK).split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
