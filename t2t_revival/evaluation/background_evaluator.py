"""`BackgroundEvaluator`: dev scores of a training's checkpoints, measured by another process."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival import registry
from t2t_revival.errors import T2TError
from t2t_revival.problems.problem import DEV
from t2t_revival.problems.text_problems import Text2TextProblem
from t2t_revival.training.checkpoints.file import CheckpointNotFoundError, CorruptCheckpointError
from t2t_revival.training.evaluator import Evaluator, Scored
from t2t_revival.training.events import NoteEvent, OnEvent, Scores
from t2t_revival.utils import native_log
from t2t_revival.utils.child_process import follow_parent, without_main_script

if TYPE_CHECKING:
    from t2t_revival.evaluation.split_scores import CheckpointScores
    from t2t_revival.training.model import TrainingTransformer
    from t2t_revival.training.state import Seen

NICENESS = 10  # so that a training on the same cores goes first
POLL_SECONDS = 0.1
WRITE_SECONDS = 600.0  # that writing a checkpoint may take


class Job(NamedTuple):
    """Arguments of `CheckpointScores` for another process."""

    output_dir: Path
    usr_dir: str | None  # the user's package that must be imported before the problem is unpickled
    problem: bytes
    data_dir: Path
    decoded_sentences: int


class Request(NamedTuple):
    """A checkpoint to score, as `Evaluator.ask` has it."""

    path: Path
    step: int
    seen: Seen


class BackgroundEvaluator(Evaluator):
    """Measures scores in a process of its own, while the training goes on: on the CPU, in float32.

    One checkpoint is scored after the other. Of those that wait for their turn only the newest is scored, so
    that an evaluation that takes longer than the updates between two does not fall behind.

    The process runs the main script again where that defines the problem; it needs its
    `if __name__ == "__main__":` then.

    Args:
        output_dir: of the training.
        problem: that is trained.
        data_dir: folder of its data.
        decoded_sentences: as for `SplitScores`.
        on_event: called with a note if a checkpoint is left out.
    """

    waits = False

    def __init__(
        self,
        output_dir: Path,
        problem: Text2TextProblem,
        data_dir: Path,
        decoded_sentences: int,
        on_event: OnEvent,
    ) -> None:
        usr_dir = registry.usr_dir_of(problem.name)
        self._job = Job(output_dir, usr_dir, pickle.dumps(problem), data_dir, decoded_sentences)
        self._on_event = on_event
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._requests: list[Request] = []  # the one that is being scored, and the next
        self._began = 0.0

    @property
    def awaited(self) -> Collection[int]:
        return [request.step for request in self._requests]

    def ask(self, model: TrainingTransformer, path: Path, step: int, seen: Seen) -> None:
        for late in self._requests[1:]:
            text = f"step {late.step}  dev scores left out: those of step {self._requests[0].step} take long"
            self._on_event(NoteEvent(text))
        self._requests[1:] = [Request(path, step, seen)]
        if len(self._requests) == 1:
            self._score_first()

    def has_news(self) -> bool:
        return bool(self._requests) and self._connection is not None and self._connection.poll()

    def take(self) -> list[Scored]:
        if not self.has_news():
            return []
        scores = self._receive()
        request = self._requests.pop(0)
        scored = [Scored(request.step, request.seen, scores, time.monotonic() - self._began)]
        if self._requests:
            self._score_first()
        return scored if scores else []

    def close(self) -> None:
        if self._process:
            self._process.kill()
            self._process.join()
        self._process = self._connection = None

    def _score_first(self) -> None:
        self._began = time.monotonic()
        if not (self._process and self._process.is_alive()):
            self._start()
        assert self._connection
        with suppress(OSError):  # of a process that has just died, as `take` will see
            self._connection.send(self._requests[0].path)

    def _start(self) -> None:
        processes = multiprocessing.get_context("spawn")
        self._connection, own = processes.Pipe()
        self._process = processes.Process(target=_serve, args=(own, self._job), daemon=True)
        with _environment_of_scoring(), without_main_script(self._job.problem):
            self._process.start()
        own.close()

    def _receive(self) -> Scores:
        """Returns the scores that have arrived; none, with a note, if there is a fault instead.

        Raises:
            T2TError: no checkpoint can be scored, for a reason that the other process has found.
        """
        assert self._process
        assert self._connection
        try:
            answer = self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            status = self._process.exitcode
            self._process = self._connection = None
            answer = f"the process that measures them ended with exit status {status}" + (
                " (out of memory?)" if status == -signal.SIGKILL else ""
            )
        if isinstance(answer, T2TError):
            raise answer
        if isinstance(answer, dict):
            return answer
        self._on_event(NoteEvent(f"warning: step {self._requests[0].step} has no dev scores: {answer}"))
        return {}


@contextmanager
def _environment_of_scoring() -> Iterator[None]:
    """Context in which processes are started that leave GPUs, and other workers, to the training."""
    backend = "tensorflow" if importlib.util.find_spec("tensorflow") else "jax"
    own = {
        "KERAS_BACKEND": backend,
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_PLATFORMS": "cpu",
        "TF_CONFIG": "{}",
    }
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(connection: Connection, job: Job) -> None:
    """Answers each path of a checkpoint by its scores, a fault of it, or an error of all."""
    follow_parent()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which may come to all processes of a training
    os.nice(NICENESS)
    scores = None
    while True:
        path = connection.recv()
        deadline = time.monotonic() + WRITE_SECONDS
        while not path.exists() and time.monotonic() < deadline:  # the training is writing it
            time.sleep(POLL_SECONDS)
        try:
            scores = scores or _load(job)
            connection.send(scores(path)[0])
        except (CorruptCheckpointError, CheckpointNotFoundError) as error:
            connection.send(str(error))
        except T2TError as error:
            connection.send(T2TError(str(error)))  # subclasses have arguments that pickle does not know


def _load(job: Job) -> CheckpointScores:
    with native_log.quiet():
        scores = _import_scores()
    if job.usr_dir:
        registry.import_usr_dir(job.usr_dir)
    problem = pickle.loads(job.problem)
    return scores(job.output_dir, problem, DEV, job.data_dir, job.decoded_sentences)


def _import_scores() -> type[CheckpointScores]:
    from t2t_revival.evaluation.split_scores import CheckpointScores

    return CheckpointScores
