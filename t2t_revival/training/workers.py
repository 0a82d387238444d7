"""Trainings of several processes, each on a machine of its own (`--strategy=multi_worker`)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from t2t_revival.errors import T2TError

VARIABLE = "TF_CONFIG"
HELP = "t2t-make-tf-configs prints it for each machine"


def check_tf_config() -> None:
    """Checks what TensorFlow will read of the environment variable `TF_CONFIG`.

    Raises:
        T2TError: it is missing, or does not say which of which workers this process is.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        raise T2TError(f"--strategy=multi_worker needs the environment variable {VARIABLE}: {HELP}")
    try:
        config = json.loads(text)
        workers = config["cluster"]["worker"]
        kind, index = config["task"]["type"], int(config["task"]["index"])
        jobs = sorted(config["cluster"])
    except (ValueError, KeyError, TypeError) as error:
        raise T2TError(f"{VARIABLE} is not of the form that is needed ({error!r}): {HELP}") from error
    if jobs != ["worker"] or kind != "worker":
        raise T2TError(f'{VARIABLE}: a cluster of the job "worker" alone is needed, not {jobs}: {HELP}')
    if not 0 <= index < len(workers):
        raise T2TError(f"{VARIABLE}: there is no worker {index} among {len(workers)}: {HELP}")


class Workers:
    """The processes that train one model together.

    Args:
        strategy: what they train under; where it is not of several processes, this is the only one.

    Attributes:
        chief: whether this process reports, evaluates and writes; the others only compute.
        several: whether there are others.
    """

    def __init__(self, strategy: tf.distribute.Strategy | None = None) -> None:
        self._strategy = strategy or tf.distribute.get_strategy()
        self.several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        self._mean = tf.function(self._mean_of_workers, autograph=False)
        self.chief = not self.several or self._strategy.cluster_resolver.task_id == 0

    def share(self, batches: tf.data.Dataset) -> Any:
        """Batches of all workers, the same in each of them -> what `fit` takes.

        TensorFlow's own way to share them out would give a batch to each worker, and not a part of it.

        Args:
            batches: nested tensors, whose first dimension is a multiple of the number of replicas.
        """
        if not self.several:
            return batches
        replicas = self._strategy.num_replicas_in_sync

        def of_worker(context: tf.distribute.InputContext) -> tf.data.Dataset:
            own = replicas // context.num_input_pipelines
            first = own * context.input_pipeline_id

            def parts(*batch: Any) -> tf.data.Dataset:
                split = tf.nest.map_structure(lambda x: _split(x, replicas)[first : first + own], batch)
                return tf.data.Dataset.from_tensor_slices(split)

            return batches.flat_map(parts)

        return self._strategy.distribute_datasets_from_function(of_worker)

    def largest(self, value: int) -> int:
        """The largest that any of them gives; all must ask."""
        if not self.several:
            return value
        resolver = self._strategy.cluster_resolver
        tasks = resolver.cluster_spec().num_tasks("worker")
        own = tf.one_hot(resolver.task_id, tasks, on_value=float(value), off_value=0.0)
        with self.together():
            found = self._mean(own) * tasks
        return round(float(tf.reduce_max(found)))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Inside, the loss of another process is an error that says what to do; see `lost_worker`."""
        try:
            yield
        except tf.errors.OpError as error:
            raise (lost_worker(error) if self.several else error) from None

    def _mean_of_workers(self, value: Any) -> Any:
        told = self._strategy.run(lambda own: own, args=(value,))
        return self._strategy.reduce(tf.distribute.ReduceOp.MEAN, told, axis=None)


def _split(x: Any, parts: int) -> Any:
    """[rows, ...] -> [parts, rows / parts, ...]."""
    shape = tf.shape(x)
    return tf.reshape(x, tf.concat([[parts, shape[0] // parts], shape[1:]], axis=0))


def lost_worker(error: Exception) -> Exception:
    """What a user can do where an error says that another process is gone; else the error itself."""
    kinds = (
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.CancelledError,
        tf.errors.DeadlineExceededError,
    )
    if not isinstance(error, kinds):
        return error
    return T2TError(
        "a worker is gone: start the same command again on all machines, and training goes on from the last "
        "checkpoint"
    )
