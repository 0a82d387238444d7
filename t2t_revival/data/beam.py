"""Shards made by a distributed engine: an Apache Beam pipeline with one element per shard.

Launcher and workers share the folder of the shards, and communicate by files in its work folder: the
launcher keeps a file there while the job is wanted; workers write the counts of finished shards, or an error.
An engine may process an element twice, even at the same time: each attempt makes its shard in a folder of its
own, with the same bytes.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineState

from t2t_revival.data.base_source import Rows
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.workers import (
    Folders,
    PackedRows,
    ShardTask,
    StoppedError,
    WorkerContext,
    make_shard,
)
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.utils import checked_json

DIRECT, DATAFLOW = "DirectRunner", "DataflowRunner"
SHARED_FOLDERS = "with --runner, --data_dir and the folders of the source must be shared by all workers"
POLL_SECONDS = 0.5
STOP_SECONDS = 5.0  # for workers to stop, before their job is cancelled
CANCEL_SECONDS = 30.0  # for a cancelled job to end, before it is abandoned
VISIBLE_SECONDS = 90.0  # NFS shows a file of another machine within a minute


class BeamShardRunner:
    """Makes shards with one of Beam's runners; a `ShardRunner` of `data.workers`.

    Args:
        runner: one of Beam's own, such as "DirectRunner", "FlinkRunner", "SparkRunner" or "DataflowRunner".
            Other classes are rejected, since their code would run. The direct runner is the one in Python:
            unlike Beam's own choice, it never downloads Prism.
        options: pipeline options, each as "name=value", or "name" for a switch.

    Raises:
        T2TError: there is no such runner or option, or Beam rejects it.
    """

    def __init__(self, runner: str, options: Sequence[str] = ()) -> None:
        self._runner = _runner_name(runner)
        self._flags = [*(f"--{option.removeprefix('--')}" for option in options), f"--runner={self._runner}"]
        if self._runner == DATAFLOW and not importlib.util.find_spec("apitools"):
            raise T2TError(f'--runner={DATAFLOW} needs more packages: pip install "apache-beam[gcp]"')
        self._check_options()
        self._pipeline()

    def __call__(
        self,
        tasks: list[ShardTask],
        rows: Rows,
        vocabularies: Vocabularies,
        folders: Folders,
        on_pairs: Callable[[int], None],
    ) -> None:
        """Makes shards as `workers.make_shards`; progress advances by whole shards.

        Raises:
            T2TError: the source cannot be read, workers do not share the folders, or the job failed.
        """
        if not tasks:
            return
        files = JobFiles(Folders(folders.shards.absolute(), folders.work.absolute()), uuid.uuid4().hex)
        paths = [vocabulary.path.absolute() for vocabulary in vocabularies.all]
        worker = MakeShard(files, PackedRows.of(rows), paths)
        pipeline = self._pipeline()
        _ = pipeline | "Tasks" >> beam.Create(tasks) | "MakeShards" >> beam.ParDo(worker)
        job = Job(pipeline, self._runner)
        files.begin(tasks)
        try:
            job.start()
            while job.is_running(POLL_SECONDS):
                on_pairs(_pairs(files.finished(tasks)))
            files.finished(tasks)  # a worker's error is clearer than the job's
            job.raise_for_failure()
            files.wait_for(tasks)
            on_pairs(_pairs(tasks))
        finally:
            files.end()
            job.stop()

    def _check_options(self) -> None:
        stderr = io.StringIO()
        try:
            with contextlib.redirect_stderr(stderr):
                options = PipelineOptions(self._flags).get_all_options(retain_unknown_options=True)
        except SystemExit as error:
            reason = stderr.getvalue().strip().split("error: ")[-1]
            raise T2TError(f"--beam_pipeline_options: {reason}") from error
        known = PipelineOptions([]).get_all_options()
        unknown = [name for name in options if name not in known]
        if unknown and self._runner in (DIRECT, DATAFLOW):  # the other runners have options of their own
            raise T2TError(f"--beam_pipeline_options: {did_you_mean(unknown[0], known, 'option of Beam')}")

    def _pipeline(self) -> beam.Pipeline:
        runner = FnApiRunner() if self._runner == DIRECT else self._runner
        try:
            return beam.Pipeline(runner, options=PipelineOptions(self._flags))
        except (ValueError, ImportError, AttributeError) as error:
            raise T2TError(f"--runner={self._runner}: {_one_line(error)}") from error


def _runner_name(runner: str) -> str:
    """Returns Beam's spelling of a runner's name; like Beam, accepts short names and any case."""
    known = {name.lower(): name for name in StandardOptions.KNOWN_RUNNER_NAMES}
    lower = runner.lower()
    if name := known.get(lower) or known.get(f"{lower}runner"):
        return name
    raise T2TError(f"--runner: {did_you_mean(runner, known.values(), 'runner')}")


@dataclass(frozen=True)
class JobFiles:
    """Files in the work folder by which the launcher and the workers of one job communicate.

    Attributes:
        folders: absolute paths, the same on all machines.
        job_id: unique, so that a worker that outlives its job finds it ended.
    """

    folders: Folders
    job_id: str

    @property
    def _wanted(self) -> Path:
        """Exists while the job is wanted."""
        return self.folders.work / f"run-{self.job_id}"

    @property
    def _error(self) -> Path:
        """A worker's error that another attempt would meet again."""
        return self.folders.work / f"run-{self.job_id}.fault"

    def begin(self, tasks: Sequence[ShardTask]) -> None:
        """Lets workers work until `end`; removes the counts of shards that are made again."""
        for task in tasks:
            self.folders.counts(task).unlink(missing_ok=True)
        self._wanted.touch()

    def end(self) -> None:
        """Lets workers stop soon."""
        self._wanted.unlink(missing_ok=True)

    def finished(self, tasks: Sequence[ShardTask]) -> list[ShardTask]:
        """Returns the tasks whose shards are finished; raises the T2TError that a worker has written."""
        names = {path.name for path in self.folders.work.iterdir()}
        if self._error.name in names:
            raise T2TError(checked_json.load(self._error, "start again")["error"])
        return [task for task in tasks if self.folders.counts(task).name in names]

    def wait_for(self, tasks: Sequence[ShardTask]) -> None:
        """Waits until all finished shards are visible here; raises T2TError after `VISIBLE_SECONDS`."""
        deadline = time.monotonic() + VISIBLE_SECONDS
        while len(self.finished(tasks)) < len(tasks):
            if time.monotonic() > deadline:
                raise T2TError(
                    f"{self.folders.shards}: shards that workers made are missing: {SHARED_FOLDERS}"
                )
            time.sleep(POLL_SECONDS)

    def write_error(self, error: str) -> None:
        """Writes an error for the launcher to raise."""
        checked_json.save(self._error, {"error": error})

    def check_wanted(self, _: int = 0) -> None:
        """Raises StoppedError if the job is no longer wanted."""
        if not self._wanted.exists():
            raise StoppedError("stopped")


class MakeShard(beam.DoFn):
    """Makes the shard of each task."""

    def __init__(self, files: JobFiles, rows: PackedRows, vocabularies: list[Path]) -> None:
        self._files, self._packed_rows, self._vocabulary_paths = files, rows, vocabularies
        self._rows: Rows
        self._vocabularies: Vocabularies

    def setup(self) -> None:
        """Opens what it needs, once per worker; raises T2TError if the work folder is not visible."""
        if not self._files.folders.work.is_dir():
            raise T2TError(f"{socket.gethostname()} cannot find {self._files.folders.work}: {SHARED_FOLDERS}")
        self._rows = self._packed_rows.open()
        self._vocabularies = Vocabularies.open(self._vocabulary_paths)

    def process(self, task: ShardTask) -> None:
        """Makes a shard. Errors that the user must fix are written for the launcher, not tried again."""
        try:
            self._make(task)
        except StoppedError:
            return
        except FileNotFoundError as error:
            self._files.write_error(f"{socket.gethostname()} cannot find {error.filename}: {SHARED_FOLDERS}")
        except T2TError as error:
            self._files.write_error(str(error))

    def _make(self, task: ShardTask) -> None:
        self._files.check_wanted()
        folders = self._files.folders
        if folders.counts(task).exists():  # finished by an earlier attempt
            return
        with tempfile.TemporaryDirectory(prefix="attempt-", dir=folders.work) as folder:
            own = Folders(Path(folder), Path(folder))
            make_shard(task, WorkerContext(self._rows, self._vocabularies, own, self._files.check_wanted))
            own.shard(task).replace(folders.shard(task))
            own.counts(task).replace(folders.counts(task))


class Job:
    """A running pipeline.

    `Pipeline.run` of the direct runner returns at the end of the job; that of other runners returns at once,
    but may need the main thread.
    """

    def __init__(self, pipeline: beam.Pipeline, runner: str) -> None:
        self._pipeline, self._runner = pipeline, runner
        self._ended = threading.Event()  # not `Thread.join`, which Ctrl-C makes believe that the thread ended
        self._ended.set()
        self._result: Any = None
        self._state = PipelineState.UNKNOWN
        self._error: Exception | None = None

    def start(self) -> None:
        """Submits the job; raises T2TError if the engine rejects it or cannot be reached."""
        if self._runner != DIRECT:
            try:
                self._result = self._pipeline.run()
            except Exception as error:  # any error of the engine's own code or of the network
                raise self._failure(error) from error
        self._ended.clear()
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        try:
            self._result = self._result or self._pipeline.run()
            self._state = self._result.wait_until_finish()
        except Exception as error:
            self._error = error
        finally:
            self._ended.set()

    def is_running(self, seconds: float) -> bool:
        """Waits up to `seconds` for the end of the job; returns whether it is still running."""
        return not self._ended.wait(seconds)

    def raise_for_failure(self) -> None:
        """Raises T2TError if the job failed."""
        if self._error:
            raise self._failure(self._error) from self._error
        if self._state != PipelineState.DONE:
            raise T2TError(f"--runner={self._runner}: the job ended as {self._state}; start again to resume")

    def stop(self) -> None:
        """Waits for the job to end, then cancels it."""
        if self._ended.wait(STOP_SECONDS) or not self._result:
            return
        with contextlib.suppress(Exception):
            self._result.cancel()
        self._ended.wait(CANCEL_SECONDS)

    def _failure(self, error: Exception) -> T2TError:
        return T2TError(
            f"--runner={self._runner}: {_one_line(error)}; finished shards are kept: start again to resume"
        )


def _pairs(tasks: Sequence[ShardTask]) -> int:
    return sum(task.pairs for task in tasks)


def _one_line(error: Exception) -> str:
    """Returns the message of an error of Beam on one line; of a traceback in it, the last line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1] if any(line.startswith("Traceback") for line in lines) else " ".join(lines)
