"""Files of outputs that survive even `kill -9`: what stands in FILE.part is done.

FILE.part         the results in input order, a line for each; renamed to FILE at the end
FILE.part.json    everything that they depend on
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from t2t_revival.decoding.lines.notes import OnNote
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import check_no_folder, is_special, lock, open_special, put_in_place, writing
from t2t_revival.utils.made_of import MadeOf
from t2t_revival.utils.signals import terminable


class OutputStream:
    """Writes results to a stream that is no file, each at once.

    Attributes:
        stream: gets the results.
        name: of the stream, for errors.
    """

    def __init__(self, stream: BinaryIO | None, name: object) -> None:
        self.stream, self.name = stream, name

    def start(self, origin: MadeOf, total: int, resumable: bool = True) -> list[str]:
        """Begins the output.

        Args:
            origin: everything that the results depend on.
            total: number of results.
            resumable: whether each result is one line.

        Returns:
            The lines of the first results, which an interrupted run has left.
        """
        return []

    def write(self, result: bytes) -> None:
        """Writes the next result, with its line end.

        Raises:
            T2TError: it cannot be written.
            BrokenPipeError: nobody reads the stream any more.
        """
        assert self.stream
        with writing(self.name):
            self.stream.write(result)
            self.stream.flush()


@contextmanager
def part_file(path: Path, on_note: OnNote, mtime_ns: int | None = None) -> Iterator[OutputStream]:
    """Opens an output whose results survive an error, SIGINT, SIGTERM and a kill.

    FILE.part is renamed to FILE when the block ends. If the block fails, FILE.part is kept if it holds any
    result, and the next output of this name with an equal `origin` resumes from it. In the block SIGTERM
    raises `Terminated`, and SIGHUP `HungUp`. A device or pipe gets the results at once.

    Args:
        path: FILE.
        on_note: called with a message if results are resumed, or cannot be.
        mtime_ns: modification time of the file. `None` leaves the time of writing.

    Raises:
        T2TError: FILE cannot be written, another process is writing it, or FILE.part is some other file. An
            error or interruption of the block is raised again, with the number of results that are kept.
    """
    check_no_folder(path)
    if is_special(path):
        with writing(path):
            stream = open_special(path)
        try:
            yield OutputStream(stream, path)
        except BaseException:
            with suppress(OSError):
                stream.close()
            raise
        with writing(path):
            stream.close()
        return
    file = _PartFile(path, on_note)
    try:
        with terminable():
            yield file
            file.finish(mtime_ns)
    except KeyboardInterrupt as error:
        if kept := file.kept():
            raise type(error)(f"interrupted; {kept}") from error
        raise
    except T2TError as error:
        if kept := file.kept():
            raise T2TError(f"{error}; {kept}") from error
        raise
    finally:
        file.close()


def side_files(path: Path) -> tuple[Path, Path]:
    """Paths of FILE.part and FILE.part.json."""
    return path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json")


class _PartFile(OutputStream):
    """Resumable output; see `part_file`."""

    def __init__(self, path: Path, on_note: OnNote) -> None:
        super().__init__(None, path)
        self._path, self._on_note = path, on_note
        self._part, origin = side_files(path)
        self._done = self._total = 0
        self._is_resumable = True
        self._is_kept = self._part.exists()  # when the file is closed
        if self._is_kept and not origin.exists():
            raise T2TError(
                f"cannot write {path}: its lines are first written to {self._part}, which exists and was "
                "not left by an interrupted run; move it away"
            )
        with writing(path):
            self._origin = origin.open("a+b")
        try:
            lock(self._origin.fileno(), f"{path} is being written by another process: wait until that ends")
        except T2TError:
            self._origin.close()
            raise

    def start(self, origin: MadeOf, total: int, resumable: bool = True) -> list[str]:
        self._total, self._is_resumable = total, resumable
        with writing(self._path):
            lines = self._resumed(origin) if resumable else []
            self._done, self._is_kept = len(lines), bool(lines)
            self.stream = self._part.open("r+b" if lines else "wb")
            self.stream.seek(sum(len(line) + 1 for line in lines))
            self.stream.truncate()
            if lines:
                self._on_note(f"resuming {self._part}: {len(lines):,} of {total:,} lines are done")
            else:
                self._origin.truncate(0)
                self._origin.write(json.dumps(origin.values).encode())
                self._origin.flush()
        return [line.decode() for line in lines]

    def write(self, result: bytes) -> None:
        super().write(result)
        self._done += 1
        self._is_kept = self._is_resumable

    def finish(self, mtime_ns: int | None) -> None:
        """Renames FILE.part to FILE."""
        assert self.stream
        with writing(self._path):
            put_in_place(self.stream, self._part, self._path, mtime_ns)
        self._is_kept = False

    def kept(self) -> str:
        """Message with the number of results that are kept; empty if there are none."""
        if not (self._done and self._is_kept):
            return ""
        done = f"{self._done:,} of {self._total:,} lines are done and kept with {self._part}"
        return f"{done}; the same command resumes"

    def close(self) -> None:
        """Closes the files, and removes them if they hold no result."""
        for file in (self._origin, self.stream):
            with suppress(OSError):  # the disk may be full
                if file:
                    file.close()
        if not self._is_kept:
            for side in side_files(self._path):
                side.unlink(missing_ok=True)

    def _resumed(self, origin: MadeOf) -> list[bytes]:
        """Returns the complete lines of FILE.part, without their ends, if they are of an equal origin."""
        *lines, _ = self._part.read_bytes().split(b"\n") if self._part.exists() else [b""]
        self._origin.seek(0)
        try:
            b"\n".join(lines).decode()
            difference = MadeOf(json.loads(self._origin.read())).difference(origin)
        except (ValueError, TypeError):
            difference = "it is corrupt"
        if lines and difference:
            self._on_note(f"{self._part} cannot be resumed, starting again: {difference}")
            return []
        return lines
