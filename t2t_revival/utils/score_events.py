"""Scores by step as TensorBoard reads them, written without TensorFlow."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

VERSION = "brain.Event:2"  # of the format, in the first event of a file


class ScoreEvents:
    """A new event file in a folder, made if missing; TensorBoard shows all event files of a folder as one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time_ns()
        # TensorBoard reads files in the order of their names, so their seconds need ten digits.
        name = f"events.out.tfevents.{now // 10**9:010}.{socket.gethostname()}.{now % 10**9:09}"
        self._records = RecordWriter((folder / name).open("xb"))
        self._write(now / 1e9, file_version=VERSION)

    def close(self) -> None:
        self._records.close()

    def add(self, step: int, wall_time: float, scores: Mapping[str, float]) -> None:
        """Adds a point to the curve of each tag, at `wall_time` in s since 1970, and flushes the file."""
        values = [Summary.Value(tag=tag, simple_value=score) for tag, score in scores.items()]
        self._write(wall_time, step=step, summary=Summary(value=values))

    def _write(self, wall_time: float, **fields: object) -> None:
        self._records.write(Event(wall_time=wall_time, **fields).SerializeToString())
        self._records.flush()
