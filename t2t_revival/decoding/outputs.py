"""Results of many inputs, written in input order while they are computed; a file of them survives a kill.

FILE.part             results in input order, up to the first that is missing; is renamed to FILE at the end
.FILE.part.journal    JSON lines, each behind its CRC-32: what the results belong to, then each finished batch
"""

from __future__ import annotations

import json
import signal
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, NoReturn, TypeVar

from t2t_revival.errors import T2TError, Terminated
from t2t_revival.files import lock, put_in_place

FORMAT = 1
Result = TypeVar("Result")


@dataclass(frozen=True)
class Form(Generic[Result]):
    """Forms of a result.

    Attributes:
        to_bytes: the lines that are written for it.
        to_json: what a journal keeps of it.
        from_json: the result again.
    """

    to_bytes: Callable[[Result], bytes]
    to_json: Callable[[Result], Any]
    from_json: Callable[[Any], Result]


class OrderedOutput(Generic[Result]):
    """Writes results to a stream in input order, each as soon as all before it are there.

    Args:
        stream: flushed after each `add`.
    """

    _form: Form[Result]

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = stream
        self._waiting: dict[int, Result] = {}
        self._written = 0

    def start(self, belongs_to: Mapping[str, Any], total: int, form: Form[Result]) -> dict[int, Result]:
        """Begins the output.

        Args:
            belongs_to: everything that the results depend on, as JSON values by names for people.
            total: number of inputs.
            form: forms of their results.

        Returns:
            Results that are known from an interrupted run, by index of their input.
        """
        self._form = form
        return {}

    def add(self, results: Mapping[int, Result]) -> None:
        """Takes results by index of their input, each once."""
        assert self._stream is not None
        self._waiting |= results
        while self._written in self._waiting:
            self._stream.write(self._form.to_bytes(self._waiting.pop(self._written)))
            self._written += 1
        self._stream.flush()


@contextmanager
def part_file(
    path: Path, on_note: Callable[[str], None], mtime_ns: int | None = None
) -> Iterator[OrderedOutput[Any]]:
    """Opens an output whose results survive an error, SIGINT, SIGTERM and a kill.

    The file gets its name when the block ends. When it does not end, FILE.part and its journal stay, if they
    hold any result, and the next output of this name that is started with an equal `belongs_to` takes the
    results from there. Within the block SIGTERM raises `Terminated`.

    Args:
        path: FILE.
        on_note: called with a line for people where results are resumed, or cannot be.
        mtime_ns: modification time of the file; None: the time at which it is written.

    Raises:
        T2TError: it cannot be written, another process is writing it, or FILE.part is a file of another kind.
            An error or interruption of the block is raised again, with how many results are kept.
    """
    file: _PartFile[Any] = _PartFile(path, on_note)
    try:
        with _terminable():
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
    """FILE.part and its journal."""
    return path.with_name(f"{path.name}.part"), path.with_name(f".{path.name}.part.journal")


class _PartFile(OrderedOutput[Result]):
    """See `part_file`."""

    def __init__(self, path: Path, on_note: Callable[[str], None]) -> None:
        super().__init__()
        self._path, self._on_note = path, on_note
        self._part, journal = side_files(path)
        self._total = self._done = 0
        if path.exists() and not path.is_file():
            raise T2TError(f"cannot write {path}: not a file")
        self._left_behind = journal.exists()
        if self._part.exists() and not self._left_behind:
            raise T2TError(
                f"cannot write {path}: its lines go to {self._part} first, and that file is there and was "
                "not left by an interrupted run; move it away"
            )
        try:
            self._journal = journal.open("a+b")
        except OSError as error:
            self._fail(error)
        try:
            lock(self._journal.fileno(), f"{path} is being written by another process: wait until it ends")
        except T2TError:
            self._journal.close()
            raise

    def start(self, belongs_to: Mapping[str, Any], total: int, form: Form[Result]) -> dict[int, Result]:
        super().start(belongs_to, total, form)
        self._total = total
        try:
            known = self._known({"format": FORMAT, **belongs_to})
            self._done = len(known)
            self._stream = self._part.open("wb")
            super().add(known)
        except OSError as error:
            self._fail(error)
        if known:
            self._on_note(f"resuming {self._part}: {len(known):,} of {total:,} lines are done")
        return known

    def add(self, results: Mapping[int, Result]) -> None:
        try:
            self._append([[index, self._form.to_json(result)] for index, result in results.items()])
            self._done += len(results)
            super().add(results)
        except OSError as error:
            self._fail(error)

    def finish(self, mtime_ns: int | None) -> None:
        """Gives the file its name."""
        assert self._stream is not None
        if self._written < self._total:
            raise RuntimeError(f"{self._path}: {self._written} of {self._total} results")
        try:
            put_in_place(self._stream, self._part, self._path, mtime_ns)
        except OSError as error:
            self._fail(error)

    def kept(self) -> str:
        """How many results stay, for people; empty if none do."""
        if not self._done or not self._part.exists():
            return ""
        done = f"{self._done:,} of {self._total:,} lines are done and kept with {self._part}"
        return f"{done}; the same command resumes"

    def close(self) -> None:
        """Closes the files, and removes those that hold nothing."""
        with suppress(OSError):  # a full disk still does not take what it did not take before
            self._journal.close()
        if self._stream:
            with suppress(OSError):
                self._stream.close()
        if not (self._done or self._left_behind) or not self._part.exists():
            for file in side_files(self._path):
                file.unlink(missing_ok=True)

    def _known(self, belongs_to: dict[str, Any]) -> dict[int, Result]:
        """Reads the journal of an earlier run, or begins another one."""
        records, end = _read(self._journal)
        wanted = json.loads(json.dumps(belongs_to))
        if self._part.exists():
            if records and records[0] == wanted:
                self._journal.truncate(end)
                found = (pair for record in records[1:] for pair in record)
                return {index: self._form.from_json(value) for index, value in found}
            self._on_note(f"{self._part} cannot be resumed, starting again: {_difference(records, wanted)}")
        self._left_behind = False
        self._journal.truncate(0)
        self._append(wanted)
        return {}

    def _append(self, record: Any) -> None:
        text = json.dumps(record).encode()
        self._journal.write(b"%08x %s\n" % (zlib.crc32(text), text))
        self._journal.flush()

    def _fail(self, error: OSError) -> NoReturn:
        raise T2TError(f"cannot write {self._path}: {error.strerror or error}") from error


def _read(journal: BinaryIO) -> tuple[list[Any], int]:
    """The records before the first that is not as it was written, and the place behind them."""
    journal.seek(0)
    records, end = [], 0
    for line in journal:
        checksum, _, text = line.removesuffix(b"\n").partition(b" ")
        if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
            break
        records.append(json.loads(text))
        end += len(line)
    return records, end


def _difference(records: list[Any], wanted: dict[str, Any]) -> str:
    if not records:
        return "its journal is damaged"
    found = records[0]
    return ", ".join(
        f"{name} was {found.get(name)}, is {value}"
        for name, value in wanted.items()
        if found.get(name) != value
    )


@contextmanager
def _terminable() -> Iterator[None]:
    """Has SIGTERM raise `Terminated`; only in the main thread, to which Python gives all signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _terminate(number: int, frame: Any) -> NoReturn:
    raise Terminated
