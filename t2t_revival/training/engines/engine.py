"""`Engine`: all of a training that depends on Keras's backend."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from t2t_revival.errors import T2TError
from t2t_revival.hparams.hparams import HParams

if TYPE_CHECKING:
    from t2t_revival.data.batching import TrainingBatches
    from t2t_revival.training.model import TrainingTransformer

Build: TypeAlias = "Callable[[HParams, int], TrainingTransformer]"


class StepLogs(NamedTuple):
    """Results of a micro-batch, which may still be on the device, or of an update.

    Attributes:
        loss: the minimised loss per target token, in nats.
        cross_entropy: the plain one.
        updates: updates done since the training began, without those skipped.
        loss_scale: the factor of the loss, in float16; else 1.
    """

    loss: Any
    cross_entropy: Any
    updates: Any
    loss_scale: Any


class Engine(abc.ABC):
    """The devices of a training, and the step that they compute.

    A step is started and not waited for: its results stay on the device until they are due, so that devices
    compute while the next batches are made.

    Attributes:
        replicas: parts of a batch, one for each device of all processes.
        chief: whether this process reports, evaluates and saves; the others only compute.
        several: whether there are other processes.
        pads_to_bucket: whether batches that are not packed must have one shape for each bucket of lengths.
    """

    replicas = 1
    chief = True
    several = False
    pads_to_bucket = False
    _model: TrainingTransformer
    _batches: TrainingBatches | None = None  # before `start`

    def __init__(self) -> None:
        self._pending: list[StepLogs] = []  # of micro-batches whose results were not yet fetched

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Context in which the model is built, and its weights read and written."""
        yield

    @abc.abstractmethod
    def prepare(self, model: TrainingTransformer) -> None:
        """Takes a model that is built and compiled, before its weights are loaded."""

    def largest_batch(self, hparams: HParams, build: Build) -> HParams:
        """Returns hparams with the largest `batch_size` that fits, and updates of as many tokens.

        Args:
            hparams: updates have `effective_batch_size` tokens, or where that is 0 a batch of each device.
            build: makes a compiled model, with so many micro-batches for an update.

        Raises:
            T2TError: this engine cannot tell, or nothing fits.
        """
        raise T2TError("batch_size=auto needs KERAS_BACKEND=jax, whose compiler says what a step takes")

    def steps(self, batches: TrainingBatches, is_due: Callable[[int], bool]) -> Iterator[list[StepLogs]]:
        """Trains without end, and yields the results of all updates since the last ones, where they are due.

        Args:
            batches: that the model trains on, one micro-batch after another.
            is_due: called after each update is started, with the number of those whose results were not yet
                yielded; returns whether to wait for these.
        """
        self._batches = batches
        step = self.start(batches)
        while True:
            self._pending.append(step())
            updates, rest = divmod(len(self._pending), self._model.optimizer.micro_batches)
            if not rest and is_due(updates):
                yield self.results()

    def results(self) -> list[StepLogs]:
        """Waits for all updates that were started, and returns the results that `steps` has not yielded."""
        pending, self._pending = self._pending, []
        logs, size = self.fetch(pending), self._model.optimizer.micro_batches
        updates = [logs[end - size : end] for end in range(size, len(logs) + 1, size)]
        means = [np.mean([one[:2] for one in update], axis=0).tolist() for update in updates]
        return [
            update[-1]._replace(loss=loss, cross_entropy=plain)
            for update, (loss, plain) in zip(updates, means, strict=True)
        ]

    @abc.abstractmethod
    def start(self, batches: TrainingBatches) -> Callable[[], StepLogs]:
        """Takes the weights that the model has; returns what starts the step of the next micro-batch."""

    @abc.abstractmethod
    def fetch(self, logs: Sequence[StepLogs]) -> list[StepLogs]:
        """Waits for steps, and returns their results as numbers."""

    @abc.abstractmethod
    def synchronize(self) -> None:
        """Assigns the last step's state to the model and its optimizer; all processes must call it."""

    def all_reduce_max(self, value: int) -> int:
        """All-reduce maximum of an int; every process must call it."""
        return value

    def translate(self, error: Exception) -> Exception:
        """Returns the error that says what a user can do, behind one of the backend; any other as it is."""
        if self.is_memory_full(error):
            return T2TError("out of memory: lower batch_size, or max_length, in --hparams")
        if self.is_worker_lost(error):
            return T2TError(
                "lost another worker: start the same command again on all machines, and training resumes "
                "from the last checkpoint"
            )
        return error

    @abc.abstractmethod
    def is_memory_full(self, error: Exception) -> bool:
        """Returns whether an error is that of a device whose memory is full."""

    @abc.abstractmethod
    def is_worker_lost(self, error: Exception) -> bool:
        """Returns whether an error is that of another process, which is gone."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Ends what `start` began, if it was called."""


def accumulation(hparams: HParams, replicas: int) -> int:
    """Micro-batches of one update, so that it sees about `effective_batch_size` tokens.

    Args:
        hparams: reads `batch_size` (tokens per replica) and `effective_batch_size`, which is 0 without
            accumulation.
        replicas: number of replicas that share each micro-batch.
    """
    return max(1, math.floor(hparams.effective_batch_size / (hparams.batch_size * replicas) + 0.5))
