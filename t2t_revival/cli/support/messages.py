"""Messages and progress on stderr, where they cannot get into translations."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from tqdm import tqdm

from t2t_revival.checkpoints.directory import Checkpoint, Unusable, ignored_checkpoint
from t2t_revival.checkpoints.file import CorruptCheckpointError
from t2t_revival.errors import T2TError
from t2t_revival.utils.unicode_forms import form_of

if TYPE_CHECKING:
    from t2t_revival.decoding.lines.batching import DecodingProgress

LOG_SECONDS = 5.0  # between two lines where stderr is no terminal
TERMINAL_SECONDS = 0.2  # between two updates of the bar
tqdm.monitor_interval = 0  # no thread of tqdm beside worker processes that are forked


def say(message: str) -> None:
    """Prints a line on stderr; where it cannot be written, it is lost and the work goes on (`streams`)."""
    print(message, file=sys.stderr, flush=True)


def warn_of_corruption(error: Unusable) -> None:
    """Warns that a checkpoint that is corrupt, or was removed meanwhile, is skipped and the next one used."""
    say(f"warning: {ignored_checkpoint(error)}")


def warn_of_skipped(error: CorruptCheckpointError) -> None:
    """Warns that a corrupt checkpoint is skipped, where each checkpoint is used by itself."""
    say(f"warning: {error.fault}; skipped")


def say_skipped(checkpoint: Checkpoint, error: T2TError) -> None:
    """Reports a checkpoint that is skipped: it is corrupt, or the training has removed it."""
    if isinstance(error, CorruptCheckpointError):
        warn_of_skipped(error)
    else:
        say(f"step {checkpoint.step}: skipped, since the training has removed its checkpoint")


def warn_of_tabs(translations: Sequence[str], references: Sequence[str], name: object) -> None:
    """Warns of translations with tabs that their references lack, as lines of several outputs have."""
    pairs = zip(translations, references, strict=True)
    if count := sum("\t" in translation and "\t" not in reference for translation, reference in pairs):
        say(
            f"warning: {name}: {count:,} of {len(translations):,} lines contain tabs, as written with "
            "return_beams or write_beam_scores, and are scored as a whole: keep the best outputs with cut -f1"
        )


def warn_of_forms(translations: Sequence[str], references: Sequence[str], name: object) -> None:
    """Warns of translations whose Unicode form is not that of their references."""
    forms = (map(form_of, side) for side in (translations, references))
    if count := sum(bool(one and other) and one != other for one, other in zip(*forms, strict=True)):
        say(
            f"warning: {name}: {count:,} of {len(translations):,} lines are in another Unicode form (NFC or "
            "NFD) than their references, so that equal words differ: bring all into NFC (uconv -x nfc)"
        )


class ProgressBar:
    """A bar with the time left on a terminal, and a plain line every few seconds elsewhere.

    Rates count from the first update. The last one, where everything is done, writes a line with the time it
    took; other work may follow. A context manager, which removes an unfinished bar from the terminal.

    Example:
        with ProgressBar("sentences") as bar:
            bar.update(0, 3003)
            bar.update(100, 3003)     # 100 of 3,003 sentences, 12.5 sentences/s, 3:52 left
            bar.update(3003, 3003)    # 3,003 sentences in 4:00, 12.5 sentences/s
    """

    def __init__(self, unit: str, stream: TextIO | None = None) -> None:
        self._unit, self._stream = unit, stream or sys.stderr
        self._interval = TERMINAL_SECONDS if self._stream.isatty() else LOG_SECONDS
        self._start: tuple[float, int] | None = None  # time, and things done before
        self._shown = 0.0
        self._bar: tqdm | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        self._close_bar()

    def update(self, done: int, total: int, share: float | None = None) -> None:
        """Shows progress, unless it was shown a moment ago.

        `done` includes the things of an interrupted run. `share`, from 0 to 1, is that of the work since the
        first update; `None` takes the share of the things.
        """
        now = time.monotonic()
        if self._start is None:
            self._start, self._shown = (now, done), now
        seconds, new = now - self._start[0], done - self._start[1]
        rate = f"{new / max(seconds, 1e-3):,.1f} {self._unit}/s"
        if done == total and new:
            self._start = None
            self.note(f"{new:,} {self._unit} in {duration(seconds)}, {rate}")
        elif new and now - self._shown >= self._interval:
            self._shown = now
            share = new / (total - self._start[1]) if share is None else share
            left = duration(seconds / share - seconds)
            text = f"{done:,} of {total:,} {self._unit}, {rate}, {left} left"
            if self._stream.isatty():
                if self._bar is None:
                    self._bar = tqdm(
                        total=1.0,
                        file=self._stream,
                        leave=False,
                        dynamic_ncols=True,
                        bar_format="{percentage:3.0f}%|{bar}| {desc}",
                    )
                self._bar.n = share
                self._bar.set_description_str(text)
            else:
                self.note(text)

    def show_decoding(self, progress: DecodingProgress) -> None:
        """Shows the progress of a `Translator`."""
        self.update(progress.done, progress.total, progress.share)

    def note(self, text: str) -> None:
        """Writes a line, in the place of the bar where there is one."""
        self._close_bar()
        print(text, file=self._stream, flush=True)

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def duration(seconds: float) -> str:
    """Formats seconds as minutes, or hours: 65.2 -> "1:05", 3661 -> "1:01:01"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
