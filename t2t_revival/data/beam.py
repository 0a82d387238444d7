"""Makes shards on a distributed engine: an Apache Beam pipeline with one element per shard.

Launcher and workers have one thing in common, the folder of the shards. In the notes beside the plan a worker
finds that its run goes on, and leaves what it has made or what was wrong. An engine may run an element twice,
even at the same time: each attempt makes its shard in a folder of its own, and the bytes are the same.
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

from t2t_revival import checked_json
from t2t_revival.data.sources import Source
from t2t_revival.data.vocabularies import TextEncoder, open_vocabulary
from t2t_revival.data.workers import Folders, PackedSource, StoppedError, Task, Workplace, make_shard
from t2t_revival.errors import T2TError, did_you_mean

DIRECT, DATAFLOW = "DirectRunner", "DataflowRunner"
WHERE = "with --runner, --data_dir and what the source reads must be folders that all workers share"
POLL_SECONDS = 0.5
GIVE_UP_SECONDS = 5.0  # that workers have to give up, before their job is cancelled
STOP_SECONDS = 30.0  # after which a job that was cancelled is not waited for any longer
VISIBLE_SECONDS = 90.0  # NFS shows a file that another machine wrote within a minute


class BeamEngine:
    """Makes shards with a runner of Beam; an `Engine` of `data.workers`.

    Args:
        runner: one of Beam's own, such as "DirectRunner", "FlinkRunner", "SparkRunner" or "DataflowRunner";
            a class of others is none, since its code would run. The direct runner is the one in Python:
            unlike Beam's own choice, it never downloads Prism.
        options: pipeline options, each as "name=value", or "name" for one that is on.

    Raises:
        T2TError: there is no such runner or option, or Beam finds them wrong.
    """

    def __init__(self, runner: str, options: Sequence[str] = ()) -> None:
        self._runner = _known(runner)
        self._flags = [*(f"--{option.removeprefix('--')}" for option in options), f"--runner={self._runner}"]
        if self._runner == DATAFLOW and not importlib.util.find_spec("apitools"):
            raise T2TError(f'--runner={DATAFLOW} needs more packages: pip install "apache-beam[gcp]"')
        self._check_options()
        self._pipeline()

    def __call__(
        self,
        tasks: list[Task],
        source: Source,
        vocabulary: TextEncoder,
        folders: Folders,
        report: Callable[[int], None],
    ) -> None:
        """Makes shards; see `workers.make_shards`. Pairs are reported shard by shard.

        Raises:
            T2TError: the source cannot be read, workers do not share the folders, or the job failed.
        """
        if not tasks:
            return
        run = Run(Folders(folders.shards.absolute(), folders.notes.absolute()), uuid.uuid4().hex)
        worker = MakeShard(run, PackedSource.of(source), vocabulary.path.absolute())
        pipeline = self._pipeline()
        _ = pipeline | "Tasks" >> beam.Create(tasks) | "MakeShards" >> beam.ParDo(worker)
        job = Job(pipeline, self._runner)
        run.begin(tasks)
        try:
            job.begin()
            while job.goes_on(POLL_SECONDS):
                report(_pairs(run.made(tasks)))
            run.made(tasks)  # whose error says more than the job's
            job.raise_fault()
            run.wait_for(tasks)
            report(_pairs(tasks))
        finally:
            run.end()
            job.end()

    def _check_options(self) -> None:
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                given = PipelineOptions(self._flags).get_all_options(retain_unknown_options=True)
        except SystemExit as error:
            reason = said.getvalue().strip().split("error: ")[-1]
            raise T2TError(f"--beam_pipeline_options: {reason}") from error
        known = PipelineOptions([]).get_all_options()
        strange = [name for name in given if name not in known]
        if strange and self._runner in (DIRECT, DATAFLOW):  # the other engines have options of their own
            raise T2TError(f"--beam_pipeline_options: {did_you_mean(strange[0], known, 'option of Beam')}")

    def _pipeline(self) -> beam.Pipeline:
        runner = FnApiRunner() if self._runner == DIRECT else self._runner
        try:
            return beam.Pipeline(runner, options=PipelineOptions(self._flags))
        except (ValueError, ImportError, AttributeError) as error:
            raise T2TError(f"--runner={self._runner}: {_line(error)}") from error


def _known(runner: str) -> str:
    """A runner's name as Beam writes it; short names and any case are understood, as Beam does."""
    known = {name.lower(): name for name in StandardOptions.KNOWN_RUNNER_NAMES}
    lower = runner.lower()
    if found := known.get(lower) or known.get(f"{lower}runner"):
        return found
    raise T2TError(f"--runner: {did_you_mean(runner, known.values(), 'runner')}")


@dataclass(frozen=True)
class Run:
    """What launcher and workers of one job tell each other, as files in the folder of the notes.

    Attributes:
        folders: absolute, the same for all.
        token: no other run's, so that a worker that outlives its run finds it ended.
    """

    folders: Folders
    token: str

    @property
    def _going(self) -> Path:
        """Is there as long as the work is wanted."""
        return self.folders.notes / f"run-{self.token}"

    @property
    def _fault(self) -> Path:
        """The error that a worker met, where no other attempt would mend it."""
        return self.folders.notes / f"run-{self.token}.fault"

    def begin(self, tasks: Sequence[Task]) -> None:
        """Has workers work until `end`. What was noted of shards that are made anew is removed."""
        for task in tasks:
            self.folders.note(task).unlink(missing_ok=True)
        self._going.touch()

    def end(self) -> None:
        """Has workers give up soon."""
        self._going.unlink(missing_ok=True)

    def made(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks whose shards are made.

        Raises:
            T2TError: what a worker left to be raised.
        """
        names = {path.name for path in self.folders.notes.iterdir()}
        if self._fault.name in names:
            raise T2TError(checked_json.load(self._fault, "start again")["error"])
        return [task for task in tasks if self.folders.note(task).name in names]

    def wait_for(self, tasks: Sequence[Task]) -> None:
        """Waits until all shards that were made are seen here.

        Raises:
            T2TError: they are not, or as `made`.
        """
        late = time.monotonic() + VISIBLE_SECONDS
        while len(self.made(tasks)) < len(tasks):
            if time.monotonic() > late:
                raise T2TError(f"{self.folders.shards}: shards that were made are not there: {WHERE}")
            time.sleep(POLL_SECONDS)

    def leave_fault(self, error: str) -> None:
        """Has the launcher raise an error."""
        checked_json.save(self._fault, {"error": error})

    def check(self, _: int = 0) -> None:
        """Raises StoppedError where the work is not wanted any longer."""
        if not self._going.exists():
            raise StoppedError("stopped")


class MakeShard(beam.DoFn):
    """Makes the shard of each task that it is given.

    Args:
        run: whose shards they are.
        source: where the pairs come from.
        vocabulary: the file of what they are encoded with.
    """

    def __init__(self, run: Run, source: PackedSource, vocabulary: Path) -> None:
        self._run, self._packed, self._file = run, source, vocabulary
        self._source: Source
        self._vocabulary: TextEncoder

    def setup(self) -> None:
        """Opens source and vocabulary, once in a worker.

        Raises:
            T2TError: this worker does not see the folder of the shards.
        """
        if not self._run.folders.notes.is_dir():
            raise T2TError(f"{socket.gethostname()} finds no {self._run.folders.notes}: {WHERE}")
        self._source, self._vocabulary = self._packed.open(), open_vocabulary(self._file)

    def process(self, task: Task) -> None:
        """Makes a shard. What the user has to mend is left for the launcher: trying again is of no use."""
        try:
            self._make(task)
        except StoppedError:
            return
        except FileNotFoundError as error:
            self._run.leave_fault(f"{socket.gethostname()} finds no {error.filename}: {WHERE}")
        except T2TError as error:
            self._run.leave_fault(str(error))

    def _make(self, task: Task) -> None:
        self._run.check()
        folders = self._run.folders
        if folders.note(task).exists():  # by an attempt before this one
            return
        with tempfile.TemporaryDirectory(prefix="attempt-", dir=folders.notes) as folder:
            own = Folders(Path(folder), Path(folder))
            make_shard(task, Workplace(self._source, self._vocabulary, own, self._run.check))
            own.shard(task).replace(folders.shard(task))
            own.note(task).replace(folders.note(task))


class Job:
    """A pipeline that runs.

    The direct runner's `run` returns at the end; the others' returns at once, but may need the main thread.
    """

    def __init__(self, pipeline: beam.Pipeline, runner: str) -> None:
        self._pipeline, self._runner = pipeline, runner
        self._ended = threading.Event()  # a thread whose `join` Ctrl-C has interrupted passes for ended
        self._ended.set()
        self._result: Any = None
        self._state = PipelineState.UNKNOWN
        self._error: Exception | None = None

    def begin(self) -> None:
        """Submits the job.

        Raises:
            T2TError: the engine refuses it, or cannot be reached.
        """
        if self._runner != DIRECT:
            try:
                self._result = self._pipeline.run()
            except Exception as error:  # whatever the engine's own code or the network raises
                raise self._failed(error) from error
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

    def goes_on(self, seconds: float) -> bool:
        """Whether the job still runs, after so many seconds."""
        return not self._ended.wait(seconds)

    def raise_fault(self) -> None:
        """Raises what made the job fail."""
        if self._error:
            raise self._failed(self._error) from self._error
        if self._state != PipelineState.DONE:
            raise T2TError(f"--runner={self._runner}: the job ended as {self._state}; start again to go on")

    def end(self) -> None:
        """Sees that the job ends, of which workers are to give up: soon, or it is cancelled."""
        if self._ended.wait(GIVE_UP_SECONDS) or not self._result:
            return
        with contextlib.suppress(Exception):
            self._result.cancel()
        self._ended.wait(STOP_SECONDS)

    def _failed(self, error: Exception) -> T2TError:
        return T2TError(
            f"--runner={self._runner}: {_line(error)}; what is done is kept, start again to go on"
        )


def _pairs(tasks: Sequence[Task]) -> int:
    return sum(task.stop - task.start for task in tasks)


def _line(error: Exception) -> str:
    """What an error of Beam says; of a traceback that it says, the end."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1] if any(line.startswith("Traceback") for line in lines) else " ".join(lines)
