"""Standard streams that are closed, full, or those of a terminal that is gone."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from t2t_revival.errors import T2TError

STREAMS = ("stdin", "stdout", "stderr")  # by their descriptors


def reserve_descriptors() -> None:
    """Opens the null device in the place of each standard stream that is closed.

    The next file that is opened would get its descriptor, and in it what libraries write to stderr.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) < len(STREAMS):
        os.set_inheritable(opened, True)
    os.close(opened)


class Tolerant:
    """A text stream whose faults are noted instead of raised, but for a pipe that nobody reads any more.

    Args:
        stream: that is written; `None` where it was closed, and nothing is written.

    Attributes:
        fault: the first one.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.fault: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes a text, as far as it can be written."""
        if self._stream is not None:
            with self._noting():
                self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flushes what can be written."""
        if self._stream is not None:
            with self._noting():
                self._stream.flush()

    def isatty(self) -> bool:
        """Returns whether the stream is a terminal's."""
        return self._stream is not None and self._stream.isatty()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            self.fault = self.fault or error


class _TolerantLog(Tolerant):
    """stderr, of which a pipe may also be closed: if it is not that of stdout, the work goes on."""

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            with super()._noting():
                yield
        except BrokenPipeError:
            if is_broken_pipe(sys.stdout):
                raise


@contextmanager
def tolerant() -> Iterator[Tolerant]:
    """Lets the work of the block go on where stdout or stderr cannot be written; yields stdout.

    Where stdout is closed, it remains `None`, to which `print` writes nothing.
    """
    before = sys.stdout, sys.stderr
    out, log = Tolerant(sys.stdout), _TolerantLog(sys.stderr)
    sys.stderr = cast(TextIO, log)
    if sys.stdout is not None:
        sys.stdout = cast(TextIO, out)
    try:
        yield out
    finally:
        sys.stdout, sys.stderr = before
        for stream in filter(None, before):
            try:
                stream.flush()
            except OSError:  # at which Python would fail once more when it ends
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
                with suppress(OSError):
                    stream.flush()


def is_broken_pipe(stream: TextIO | None) -> bool:
    """Returns whether a stream is a pipe that nobody reads any more."""
    try:
        descriptor = stream.fileno()  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def standard_input() -> TextIO:
    """Returns stdin; raises T2TError if it is closed."""
    if sys.stdin is None:
        raise T2TError("the standard input is closed: name a file, or give < /dev/null for an empty input")
    return sys.stdin


def standard_output() -> TextIO:
    """Returns stdout, for results; raises T2TError if it is closed."""
    if sys.stdout is None:
        raise T2TError("the standard output is closed: name a file for the outputs")
    return sys.stdout
