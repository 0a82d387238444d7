"""Outputs: as lines in T2T's format, and files of them that survive even `kill -9`.

Results are written in input order while they are computed:

FILE.part             results in input order, up to the first that is missing; renamed to FILE at the end
.FILE.part.journal    JSON lines, each after its CRC-32: the origin of the results, then each complete batch
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from t2t_revival.decoding.details import Details
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import check_no_folder, is_special, lock, open_special, put_in_place, writing
from t2t_revival.utils.signals import terminable

MAX_EXPONENT = 700.0  # exp of more overflows
FORMAT = 1
Draw = Callable[[str], str]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Translation:
    """One output.

    Attributes:
        text: without line ends.
        score: log-probability / length penalty; 0 for the output of an empty input.
        repaired: whether the model's output was malformed, such as half a tree.
        truncated: whether the input was longer than the model's inputs may be, and was cut.
        details: of its words and tokens, if the options ask for them.
        missing: phrases of its line's constraints that it lacks, since there was no room for them.
        present: phrases that it has although they should be avoided.
        unaligned: terms of the source and their translations that it has, but for other words of the source,
            as far as its word alignment shows.
    """

    text: str
    score: float
    repaired: bool = False
    truncated: bool = False
    details: Details | None = None
    missing: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    unaligned: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Translation:
        """Converts from the JSON values that `dataclasses.asdict` makes of an output."""
        details = fields["details"] and Details.from_json(fields["details"])
        phrases = {name: tuple(fields[name]) for name in ("missing", "present")}
        unaligned = tuple((source, phrase) for source, phrase in fields.get("unaligned", ()))
        return cls(**{**fields, **phrases, "details": details, "unaligned": unaligned})


@dataclass(frozen=True)
class Score:
    """Log-probability of an output.

    Attributes:
        log_prob: natural logarithm of its probability given its source, summed over its tokens.
        tokens: number of tokens, EOS counted.
        details: of its words and tokens, if the options ask for them.
    """

    log_prob: float
    tokens: int
    details: Details | None = None

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Score:
        """Converts from the JSON values that `dataclasses.asdict` makes of a score."""
        details = fields["details"]
        return cls(**{**fields, "details": details and Details.from_json(details)})


def format_outputs(
    outputs: Sequence[Translation],
    beams: bool,
    scores: bool,
    draw: Draw | None = None,
    columns: int = 1,
    links: Callable[[Any], str] | None = None,
) -> bytes:
    """Formats the outputs of one input as T2T does.

    Args:
        outputs: best first.
        beams: whether all outputs stand on the line, joined by tabs, and not only the best.
        scores: whether each output is followed by a tab and its score.
        draw: draws an output over several lines; an empty line, and no tab, then follows each.
        columns: with `beams`, the outputs of a line; missing ones are empty and have score -inf.
        links: formats an output's word alignment, which follows it after a tab; `None` for no alignments.
    """
    outputs = outputs if beams else outputs[:1]
    if draw:
        return to_bytes([draw_output(output, scores, draw) + "\n" for output in outputs])
    cells = []
    for output in outputs:
        # A tab in the text would look like a column.
        cells.append(output.text.replace("\t", " ") if beams or scores or links else output.text)
        cells += [f"{output.score:.2f}"] * scores
        cells += [links(output)] if links else []
    missing = ["", *["-inf"] * scores, *[""] * bool(links)]
    return to_bytes(["\t".join(cells + missing * (beams * (columns - len(outputs))))])


def draw_output(output: Translation, scores: bool, draw: Draw) -> str:
    """Draws an output, below its score where `scores`."""
    return (f"{output.score:.2f}\n" if scores else "") + draw(output.text)


def to_bytes(lines: Sequence[str]) -> bytes:
    """Encodes lines, each with a line feed, as UTF-8."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


@dataclass(frozen=True)
class ResultFormat(Generic[Result]):
    """Conversions of a result: to its lines in the file, and to and from its JSON value in the journal."""

    to_bytes: Callable[[Result], bytes]
    to_json: Callable[[Result], Any]
    from_json: Callable[[Any], Result]


class OrderedOutput(Generic[Result]):
    """Writes results to a stream in input order, each as soon as all before it are complete.

    Args:
        stream: flushed after each `add`.
    """

    _format: ResultFormat[Result]

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = stream
        self._pending: dict[int, Result] = {}
        self._written = 0

    def start(
        self, origin: Mapping[str, Any], total: int, result_format: ResultFormat[Result]
    ) -> dict[int, Result]:
        """Begins the output.

        Args:
            origin: everything that the results depend on, as JSON values by readable names.
            total: number of inputs.
            result_format: converts results.

        Returns:
            Results of an interrupted run, by index of their input.
        """
        self._format = result_format
        return {}

    def add(self, results: Mapping[int, Result]) -> None:
        """Adds results by index of their input, each once."""
        assert self._stream is not None
        self._pending |= results
        while self._written in self._pending:
            self._stream.write(self._format.to_bytes(self._pending.pop(self._written)))
            self._written += 1
        self._stream.flush()


class StreamOutput(OrderedOutput[Result]):
    """Output to a stream that is no file; `name` is for errors.

    Raises:
        T2TError: it cannot be written.
        BrokenPipeError: nobody reads it any more.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream)
        self._name = name

    def add(self, results: Mapping[int, Result]) -> None:
        with writing(self._name):
            super().add(results)


@contextmanager
def part_file(
    path: Path, on_note: Callable[[str], None], mtime_ns: int | None = None
) -> Iterator[OrderedOutput[Any]]:
    """Opens an output whose results survive an error, SIGINT, SIGTERM and a kill.

    FILE.part is renamed to FILE when the block ends. If the block fails, FILE.part and its journal are kept
    if they hold any result, and the next output of this name with an equal `origin` resumes from them. In the
    block SIGTERM raises `Terminated`, and SIGHUP `HungUp`. A device or pipe gets the results at once.

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
            yield StreamOutput(stream, str(path))
        except BaseException:
            with suppress(OSError):
                stream.close()
            raise
        with writing(path):
            stream.close()
        return
    file: _PartFile[Any] = _PartFile(path, on_note)
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
    """Paths of FILE.part and its journal."""
    return path.with_name(f"{path.name}.part"), path.with_name(f".{path.name}.part.journal")


class _PartFile(OrderedOutput[Result]):
    """Resumable output; see `part_file`."""

    def __init__(self, path: Path, on_note: Callable[[str], None]) -> None:
        super().__init__()
        self._path, self._on_note = path, on_note
        self._part, journal = side_files(path)
        self._total = self._done = 0
        self._resumable = journal.exists()
        if self._part.exists() and not self._resumable:
            raise T2TError(
                f"cannot write {path}: its lines are first written to {self._part}, which exists and was "
                "not left by an interrupted run; move it away"
            )
        with writing(path):
            self._journal = journal.open("a+b")
        try:
            lock(self._journal.fileno(), f"{path} is being written by another process: wait until that ends")
        except T2TError:
            self._journal.close()
            raise

    def start(
        self, origin: Mapping[str, Any], total: int, result_format: ResultFormat[Result]
    ) -> dict[int, Result]:
        super().start(origin, total, result_format)
        self._total = total
        with writing(self._path):
            completed = self._resume({"format": FORMAT, **origin})
            self._done = len(completed)
            self._stream = self._part.open("wb")
            super().add(completed)
        if completed:
            self._on_note(f"resuming {self._part}: {len(completed):,} of {total:,} lines are done")
        return completed

    def add(self, results: Mapping[int, Result]) -> None:
        with writing(self._path):
            self._append([[index, self._format.to_json(result)] for index, result in results.items()])
            self._done += len(results)
            super().add(results)

    def finish(self, mtime_ns: int | None) -> None:
        """Renames FILE.part to FILE."""
        assert self._stream is not None
        if self._written < self._total:
            raise RuntimeError(f"{self._path}: {self._written} of {self._total} results")
        with writing(self._path):
            put_in_place(self._stream, self._part, self._path, mtime_ns)

    def kept(self) -> str:
        """Message with the number of results that are kept; empty if there are none."""
        if not self._done or not self._part.exists():
            return ""
        done = f"{self._done:,} of {self._total:,} lines are done and kept with {self._part}"
        return f"{done}; the same command resumes"

    def close(self) -> None:
        """Closes the files, and removes them if they hold no result."""
        with suppress(OSError):  # the disk may be full
            self._journal.close()
        if self._stream:
            with suppress(OSError):
                self._stream.close()
        if not (self._done or self._resumable) or not self._part.exists():
            for file in side_files(self._path):
                file.unlink(missing_ok=True)

    def _resume(self, origin: dict[str, Any]) -> dict[int, Result]:
        """Returns the results in the journal of an earlier run, or starts another journal."""
        records, end = _read_journal(self._journal)
        origin = json.loads(json.dumps(origin))
        if self._part.exists():
            if records and records[0] == origin:
                self._journal.truncate(end)
                pairs = (pair for record in records[1:] for pair in record)
                return {index: self._format.from_json(value) for index, value in pairs}
            self._on_note(f"{self._part} cannot be resumed, starting again: {_difference(records, origin)}")
        self._resumable = False
        self._journal.truncate(0)
        self._append(origin)
        return {}

    def _append(self, record: Any) -> None:
        text = json.dumps(record).encode()
        self._journal.write(b"%08x %s\n" % (zlib.crc32(text), text))
        self._journal.flush()


def _read_journal(journal: BinaryIO) -> tuple[list[Any], int]:
    """Returns the records before the first corrupt one, and the position after them."""
    journal.seek(0)
    records, end = [], 0
    for line in journal:
        checksum, _, text = line.removesuffix(b"\n").partition(b" ")
        if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
            break
        records.append(json.loads(text))
        end += len(line)
    return records, end


def _difference(records: list[Any], origin: dict[str, Any]) -> str:
    if not records:
        return "its journal is corrupt"
    return ", ".join(
        f"{name} was {records[0].get(name)}, is {value}"
        for name, value in origin.items()
        if records[0].get(name) != value
    )


def per_token(scores: Sequence[Score]) -> tuple[float, float]:
    """Returns mean log-probability per token, and perplexity; 0 and 1 without scores."""
    tokens = sum(score.tokens for score in scores)
    mean = sum(score.log_prob for score in scores) / max(tokens, 1)
    return mean, math.exp(min(-mean, MAX_EXPONENT))


def summarize(scores: Sequence[Score]) -> str:
    """Describes the mean of scores for people."""
    mean, perplexity = per_token(scores)
    tokens = sum(score.tokens for score in scores)
    return (
        f"log-probability {mean:.4f} per token, perplexity {perplexity:.2f} ({tokens:,} tokens of "
        f"{len(scores):,} targets, EOS counted)"
    )
