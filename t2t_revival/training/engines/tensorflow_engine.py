"""Section 5.2: the devices and processes on which a model trains under TensorFlow.

Several processes, each on its own machine, are one training by `--strategy=multi_worker`.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from t2t_revival.data.batching import Element, TrainingBatches
from t2t_revival.errors import T2TError
from t2t_revival.training.engines.engine import Engine, StepLogs
from t2t_revival.training.engines.tensorflow_update import apply_gradients
from t2t_revival.utils.freed_memory import keep_freed_memory
from t2t_revival.utils.keras_hooks import micro_batch_count

if TYPE_CHECKING:
    from t2t_revival.training.model import TrainingTransformer
    from t2t_revival.training.run_config import RunConfig


VARIABLE = "TF_CONFIG"
PARTING_SECONDS = 2.0
HELP = "t2t-make-tf-configs prints it for each machine"
PREFETCH = 64  # batches made ahead, which bridge the pause while the next chunk is read


class TensorFlowEngine(Engine):
    """A step of all replicas of a strategy of distribution, as a graph; see `make_step`.

    Args:
        config: reads `strategy` and `xla`.
        strategy: of distribution; `None` makes the one that `config` names.

    Raises:
        T2TError: as `make_strategy`; or `shard_optimizer` is set.
    """

    def __init__(self, config: RunConfig, strategy: tf.distribute.Strategy | None = None) -> None:
        super().__init__()
        self._strategy = strategy or make_strategy(config.strategy)
        self.replicas = self._strategy.num_replicas_in_sync
        self.several = isinstance(self._strategy, tf.distribute.MultiWorkerMirroredStrategy)
        self.chief = not self.several or self._strategy.cluster_resolver.task_id == 0
        self.pads_to_bucket = config.xla
        self._mean = tf.function(self._mean_of_workers, autograph=False)
        if config.shard_optimizer:
            raise T2TError("--shard_optimizer needs KERAS_BACKEND=jax: leave it out")

    @contextmanager
    def scope(self) -> Iterator[None]:
        try:
            with self._strategy.scope():
                yield
        except tf.errors.OpError as error:
            raise self.translate(error) from None

    def prepare(self, model: TrainingTransformer) -> None:
        self._model = model
        if self.replicas > 1:
            model.replica = replica_number

    def start(self, batches: TrainingBatches) -> Callable[[], StepLogs]:
        iterator = iter(self._distribute(batch_dataset(batches)))
        return partial(make_step(self._model, self._strategy, self.pads_to_bucket), iterator)

    def fetch(self, logs: Sequence[StepLogs]) -> list[StepLogs]:
        return [StepLogs(*(np.asarray(value).item() for value in one)) for one in logs]

    def synchronize(self) -> None:
        """Has nothing to do: the step changes the variables of the model themselves."""

    def all_reduce_max(self, value: int) -> int:
        if not self.several:
            return value
        resolver = self._strategy.cluster_resolver
        tasks = resolver.cluster_spec().num_tasks("worker")
        value_at_own_place = tf.one_hot(resolver.task_id, tasks, on_value=float(value), off_value=0.0)
        try:
            values = self._mean(value_at_own_place) * tasks  # [tasks]
        except tf.errors.OpError as error:
            raise self.translate(error) from None
        return round(float(tf.reduce_max(values)))

    def translate(self, error: Exception) -> Exception:
        """Returns the error of `Engine.translate`; TensorFlow raises a copy of what ended the batches."""
        own = self._batches and self._batches.error
        return own if own and isinstance(error, tf.errors.OpError) else super().translate(error)

    def is_memory_full(self, error: Exception) -> bool:
        return isinstance(error, tf.errors.ResourceExhaustedError)

    def is_worker_lost(self, error: Exception) -> bool:
        return self.several and isinstance(error, LOSSES)

    def stop(self) -> None:
        """Leaves the chief time to read its last sum from this worker, which would take its memory along."""
        if self.several and not self.chief:
            time.sleep(PARTING_SECONDS)

    def _distribute(self, batches: tf.data.Dataset) -> Any:
        """Distributes global batches, equal on all workers: a part for each replica.

        Their tensors' first dimension must be a multiple of the number of replicas. TensorFlow's own
        distribution would give each worker other batches, and not its part of each.
        """
        if not self.several:
            return self._strategy.experimental_distribute_dataset(batches)

        def dataset_of_worker(context: tf.distribute.InputContext) -> tf.data.Dataset:
            count = self.replicas // context.num_input_pipelines
            first = count * context.input_pipeline_id

            def parts_of_worker(*batch: Any) -> tf.data.Dataset:
                split = partial(_split, parts=self.replicas)
                parts = tf.nest.map_structure(lambda x: split(x)[first : first + count], batch)
                return tf.data.Dataset.from_tensor_slices(parts)

            return batches.flat_map(parts_of_worker)

        return self._strategy.distribute_datasets_from_function(dataset_of_worker)

    def _mean_of_workers(self, value: Any) -> Any:
        per_replica = self._strategy.run(lambda x: x, args=(value,))
        return self._strategy.reduce(tf.distribute.ReduceOp.MEAN, per_replica, axis=None)


LOSSES = (  # errors of a worker whose connection to another one is gone
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


def make_step(
    model: TrainingTransformer, strategy: tf.distribute.Strategy, xla: bool = False
) -> Callable[[Any], StepLogs]:
    """Returns a function that takes a distributed iterator, and trains on its next batch.

    XLA, which cannot compile TensorFlow's sums over replicas, compiles the losses and gradients of each of
    several replicas by themselves, and the whole step of a single one.
    """
    optimizer, weights = model.optimizer, model.trainable_variables

    def losses_and_gradients(x: Any, y: Any, token_weights: Any) -> tuple[Any, Any, list[Any]]:
        with tf.GradientTape() as tape:
            loss, plain = model.token_losses(x, y, model(x, training=True), token_weights)
            scaled = optimizer.scale_loss(loss)
        return loss, plain, tape.gradient(scaled, [weight.value for weight in weights])

    def replica_step(*batch: Any) -> StepLogs:
        loss, plain, gradients = losses_and_gradients(*batch)
        apply_gradients(optimizer, gradients, weights)
        micro_batch_count(optimizer).assign_add(1)
        return StepLogs(loss, plain, *optimizer.progress())

    def step(iterator: Any) -> StepLogs:
        logs = strategy.run(replica_step, args=next(iterator))
        losses = (strategy.reduce("SUM", loss, axis=None) for loss in logs[:2])
        return StepLogs(*losses, *(strategy.experimental_local_results(value)[0] for value in logs[2:]))

    if xla and strategy.num_replicas_in_sync > 1:
        losses_and_gradients = tf.function(losses_and_gradients, jit_compile=True, autograph=False)
    elif xla:
        replica_step = tf.function(replica_step, jit_compile=True, autograph=False, reduce_retracing=True)
    return tf.function(step, autograph=False, reduce_retracing=True)


def make_strategy(name: str = "auto") -> tf.distribute.Strategy:
    """The strategy of that name.

    Args:
        name: "default" for one device, "mirrored" for all GPUs (without any: all logical CPUs), "auto" for
            "mirrored" where there are several GPUs and "default" elsewhere; "multi_worker" for all GPUs of
            the machines that `TF_CONFIG` names, to be made before TensorFlow computes anything.

    Raises:
        T2TError: `TF_CONFIG` is invalid.
    """
    if name == "multi_worker":
        check_tf_config()
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = tf.config.list_logical_devices("GPU")
    if name == "default" or (name == "auto" and len(gpus) < 2):
        return tf.distribute.get_strategy()
    devices = gpus or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def replica_number() -> Any:
    """Number of the current replica among those of all workers, an int or int scalar; 0 outside of any."""
    context = tf.distribute.get_replica_context()
    return context.replica_id_in_sync_group if context else 0


def check_tf_config() -> None:
    """Checks the environment variable `TF_CONFIG`, which TensorFlow will read.

    Raises:
        T2TError: it is missing, or does not name the workers and the index of this one.
    """
    try:
        config = json.loads(os.environ.get(VARIABLE, ""))
        cluster, task = config["cluster"], config["task"]
        is_valid = [*cluster] == [task["type"]] == ["worker"]
        is_valid &= 0 <= int(task["index"]) < len(cluster["worker"])
    except (ValueError, KeyError, TypeError):
        is_valid = False
    if not is_valid:
        raise T2TError(
            f"--strategy=multi_worker needs the environment variable {VARIABLE}, with a cluster of workers "
            f"alone, and the index of this one: {HELP}"
        )


def _split(x: Any, parts: int) -> Any:
    """Splits the rows: [rows, ...] -> [parts, rows / parts, ...]."""
    shape = tf.shape(x)
    return tf.reshape(x, tf.concat([[parts, shape[0] // parts], shape[1:]], axis=0))


def batch_dataset(batches: TrainingBatches) -> tf.data.Dataset:
    """Returns the endless batches of a training, as `TrainingBatches.elements` has them.

    Returns:
        Elements (inputs, labels int32 [n, t], weights float32 [n, t]), where inputs are all arrays but the
        weights. The labels are the targets; their weights are 0 at padding.

    Raises:
        tf.errors.OpError: during iteration; the original exception is in `batches.error`.
    """
    kinds = {"weights": (2, tf.float32), "alignments": (3, tf.float32)}
    signature = {
        name: tf.TensorSpec([None] * rank, kind)
        for name, (rank, kind) in ((name, kinds.get(name, (2, tf.int32))) for name in batches.names)
    }

    def begin() -> Iterator[Element]:
        # The first such data set turns that off under Python 3.11 and newer (`ApplyPython311MemoryPatch`):
        # the kernel zeroes the pages of each tensor then, twice the system time of a small training on CPUs.
        keep_freed_memory()
        return _until_exit(batches.elements())

    data = tf.data.Dataset.from_generator(begin, output_signature=signature)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    data = data.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    return data.map(_with_weights).with_options(options).prefetch(PREFETCH)


def _until_exit(elements: Iterator[Element]) -> Iterator[Element]:
    """Ends `elements` before Python exits: TensorFlow's prefetching thread would wait for it for ever."""
    stop, busy = threading.Event(), threading.Lock()

    def end() -> None:
        stop.set()
        with busy:
            pass
        time.sleep(0.1)  # for TensorFlow to request one more element and find the end

    atexit.register(end)
    try:
        while not stop.is_set():
            with busy:
                element = next(elements, None)
            if element is None:
                break
            yield element
    finally:
        if not stop.is_set():
            atexit.unregister(end)


def _with_weights(element: dict[str, tf.Tensor]) -> tuple:
    x = {name: array for name, array in element.items() if name != "weights"}
    targets = x["targets"]
    return x, targets, tf.cast(targets != 0, tf.float32) * element["weights"]
