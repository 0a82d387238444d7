"""Progress for people: one line that changes on a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from t2t_revival.decoding.inputs import Progress

LOG_SECONDS, TERMINAL_SECONDS = 5.0, 0.2  # between two progress lines in a log, and on a terminal


class ProgressLine:
    """Where progress is shown; what it says is the caller's."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._shown = time.monotonic()
        self._width = 0  # of the line that stands on the terminal

    def due(self) -> bool:
        """Whether the last line is old enough for another one."""
        return time.monotonic() - self._shown >= (TERMINAL_SECONDS if self._terminal else LOG_SECONDS)

    def show(self, text: str) -> None:
        """Puts `text` in the place of the line on the terminal, or writes one more line of the log."""
        self._shown = time.monotonic()
        self._stream.write(f"\r{text:{self._width}}" if self._terminal else f"{text}\n")
        self._width = len(text)
        self._stream.flush()

    def end(self) -> None:
        """Ends the line that stands on the terminal."""
        if self._terminal and self._width:
            self._stream.write("\n")
            self._stream.flush()
        self._width = 0


class SentenceProgress:
    """Says how far decoding is; a context manager, which ends the line on a terminal after an error.

    Args:
        stream: where it is shown.
        known: sentences that were done before.
    """

    def __init__(self, stream: TextIO, known: int = 0) -> None:
        self._known = known
        self._began = time.monotonic()
        self._line = ProgressLine(stream)

    def __enter__(self) -> SentenceProgress:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error:
            self._line.end()

    def __call__(self, progress: Progress) -> None:
        """Takes note of what is done."""
        if not self._line.due():
            return
        seconds = time.monotonic() - self._began
        left = seconds / progress.share - seconds
        self._line.show(
            f"{progress.done:,} of {progress.total:,} sentences, "
            f"{(progress.done - self._known) / seconds:.1f} sentences/s, {duration(left)} left"
        )

    def end(self, total: int) -> None:
        """The last line."""
        seconds = time.monotonic() - self._began
        sentences = total - self._known
        rate = sentences / max(seconds, 1e-3)
        self._line.show(f"{sentences:,} sentences in {duration(seconds)}, {rate:.1f} sentences/s")
        self._line.end()


def duration(seconds: float) -> str:
    """65.2 -> "1:05", 3661 -> "1:01:01"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
