"""Standard streams that cannot be written: on a full disk, or of a terminal that is gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast


class Tolerant:
    """A text stream whose faults are noted instead of raised.

    Args:
        stream: that is written.
        raises: for stdout: faults that are raised, such as that nobody reads a pipe any more.

    Attributes:
        fault: the first one.
    """

    def __init__(self, stream: TextIO, raises: tuple[type[OSError], ...] = ()) -> None:
        self._stream, self._raises = stream, raises
        self.fault: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes a text, as far as it can be written."""
        with self._noting():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flushes what can be written."""
        with self._noting():
            self._stream.flush()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except self._raises:
            raise
        except OSError as error:
            self.fault = self.fault or error


@contextmanager
def tolerant() -> Iterator[Tolerant]:
    """Lets the work of the block go on where stdout or stderr is closed or full; yields stdout."""
    before = tuple(stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
    out = Tolerant(before[0], (BrokenPipeError,))
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, Tolerant(before[1]))
    try:
        yield out
    finally:
        sys.stdout, sys.stderr = before
        for stream in before:
            try:
                stream.flush()
            except OSError:  # at which Python would fail once more when it ends
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
                with suppress(OSError):
                    stream.flush()
