"""Section 5.2: the devices and processes on which a model trains.

Several processes, each on its own machine, are one training by `--strategy=multi_worker`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams

VARIABLE = "TF_CONFIG"
HELP = "t2t-make-tf-configs prints it for each machine"
STRATEGIES = ("auto", "default", "mirrored", "multi_worker")


def make_strategy(name: str = "auto") -> tf.distribute.Strategy:
    """The strategy of that name.

    Args:
        name: "default" for one device, "mirrored" for all GPUs (without any: all logical CPUs), "auto" for
            "mirrored" where there are several GPUs and "default" elsewhere; "multi_worker" for all GPUs of
            the machines that `TF_CONFIG` names, to be made before TensorFlow computes anything.

    Raises:
        T2TError: there is no such strategy, or `TF_CONFIG` is invalid.
    """
    if name not in STRATEGIES:
        raise T2TError(f"--strategy={name} is not one of {', '.join(STRATEGIES)}")
    if name == "multi_worker":
        check_tf_config()
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = tf.config.list_logical_devices("GPU")
    if name == "default" or (name == "auto" and len(gpus) < 2):
        return tf.distribute.get_strategy()
    devices = gpus or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def accumulation(hparams: HParams, replicas: int) -> int:
    """Micro-batches of one update, so that it sees about `effective_batch_size` tokens.

    Args:
        hparams: reads `batch_size` (tokens per replica) and `effective_batch_size`, which is 0 without
            accumulation.
        replicas: number of replicas that share each micro-batch.
    """
    return max(1, math.floor(hparams.effective_batch_size / (hparams.batch_size * replicas) + 0.5))


def replica_number() -> Any:
    """Number of the current replica among those of all workers, an int or int scalar; 0 outside of any."""
    context = tf.distribute.get_replica_context()
    return context.replica_id_in_sync_group if context else 0


def check_tf_config() -> None:
    """Checks the environment variable `TF_CONFIG`, which TensorFlow will read.

    Raises:
        T2TError: it is missing, or does not name the workers and the index of this one.
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
        raise T2TError(f"{VARIABLE} is not a valid cluster configuration ({error!r}): {HELP}") from error
    if jobs != ["worker"] or kind != "worker":
        raise T2TError(f'{VARIABLE}: the cluster must have the job "worker" alone, not {jobs}: {HELP}')
    if not 0 <= index < len(workers):
        raise T2TError(
            f"{VARIABLE}: task index {index} must be below {len(workers)}, the number of workers: {HELP}"
        )


class Workers:
    """The processes that train one model together.

    Args:
        strategy: of distribution; unless it is of several workers, this process is the only one.

    Attributes:
        chief: whether this process reports, evaluates and saves; the others only compute.
        several: whether there are other workers.
    """

    def __init__(self, strategy: tf.distribute.Strategy | None = None) -> None:
        self._strategy = strategy or tf.distribute.get_strategy()
        self.several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        self._mean = tf.function(self._mean_of_workers, autograph=False)
        self.chief = not self.several or self._strategy.cluster_resolver.task_id == 0

    def distribute(self, batches: tf.data.Dataset) -> Any:
        """Distributes global batches, equal on all workers, as `fit` needs them: a part for each replica.

        Their tensors' first dimension must be a multiple of the number of replicas. TensorFlow's own
        distribution would give each worker other batches, and not its part of each.
        """
        if not self.several:
            return batches
        replicas = self._strategy.num_replicas_in_sync

        def dataset_of_worker(context: tf.distribute.InputContext) -> tf.data.Dataset:
            count = replicas // context.num_input_pipelines
            first = count * context.input_pipeline_id

            def parts_of_worker(*batch: Any) -> tf.data.Dataset:
                parts = tf.nest.map_structure(lambda x: _split(x, replicas)[first : first + count], batch)
                return tf.data.Dataset.from_tensor_slices(parts)

            return batches.flat_map(parts_of_worker)

        return self._strategy.distribute_datasets_from_function(dataset_of_worker)

    def all_reduce_max(self, value: int) -> int:
        """All-reduce maximum of an int; every worker must call it."""
        if not self.several:
            return value
        resolver = self._strategy.cluster_resolver
        tasks = resolver.cluster_spec().num_tasks("worker")
        value_at_own_place = tf.one_hot(resolver.task_id, tasks, on_value=float(value), off_value=0.0)
        with self.translate_worker_errors():
            values = self._mean(value_at_own_place) * tasks  # [tasks]
        return round(float(tf.reduce_max(values)))

    @contextmanager
    def translate_worker_errors(self) -> Iterator[None]:
        """Translates TensorFlow errors in the block by `lost_worker`."""
        try:
            yield
        except tf.errors.OpError as error:
            raise (lost_worker(error) if self.several else error) from None

    def _mean_of_workers(self, value: Any) -> Any:
        per_replica = self._strategy.run(lambda x: x, args=(value,))
        return self._strategy.reduce(tf.distribute.ReduceOp.MEAN, per_replica, axis=None)


def _split(x: Any, parts: int) -> Any:
    """Splits the rows: [rows, ...] -> [parts, rows / parts, ...]."""
    shape = tf.shape(x)
    return tf.reshape(x, tf.concat([[parts, shape[0] // parts], shape[1:]], axis=0))


def lost_worker(error: Exception) -> Exception:
    """The error for a user if another worker is gone; any other error as it is."""
    kinds = (
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.CancelledError,
        tf.errors.DeadlineExceededError,
    )
    if not isinstance(error, kinds):
        return error
    return T2TError(
        "lost another worker: start the same command again on all machines, and training resumes from the "
        "last checkpoint"
    )
