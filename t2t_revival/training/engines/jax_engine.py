"""Section 5.2: the devices and processes on which a model trains under JAX, without TensorFlow.

A step is one compiled function of the training's state and a batch; the old state is donated to it, so that
memory holds one state. Batches are split over all devices, weights copied to each: XLA adds the sums.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from t2t_revival.data.batching import packed_shape
from t2t_revival.data.examples import SIDES
from t2t_revival.data.packing import SEGMENTS
from t2t_revival.errors import T2TError
from t2t_revival.training.engines.engine import Build, Engine, StepLogs, accumulation
from t2t_revival.training.engines.jax_update import OptimizerState, apply_gradients, first_state, in_blocks
from t2t_revival.training.run_config import packs
from t2t_revival.utils.keras_config import keep_programs
from t2t_revival.utils.keras_hooks import gradient_sums, release
from t2t_revival.utils.texts import readable_size

if TYPE_CHECKING:
    from t2t_revival.data.batching import Element, TrainingBatches
    from t2t_revival.hparams.hparams import HParams
    from t2t_revival.training.model import TrainingTransformer
    from t2t_revival.training.run_config import RunConfig


Batch = dict[str, jax.Array]  # an `Element` on the devices
AXIS = "batch"
BATCHES_AHEAD = 4  # on the device, before they are needed
FIRST = 1024  # tokens of a device's part of a batch, from which the largest one is searched by doubling
MARGIN = 0.1  # of the memory, for batches made ahead, evaluations and fragments
COORDINATOR, PROCESSES, PROCESS = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"
TIMEOUT = "T2T_COORDINATOR_TIMEOUT"  # seconds
MORE_SECONDS = 3600  # that JAX itself would wait
CONNECT_SECONDS = 5.0  # of one try
HELP = (
    f"set {COORDINATOR}=HOST:PORT of the first process, {PROCESSES} and {PROCESS} for each, or start them by "
    "Slurm or Open MPI"
)
LOST = (  # texts in errors of a process whose connection to another one is gone
    *("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "Connection closed", "Connection reset", "Gloo"),
)


def devices_of(strategy: str) -> list[jax.Device]:
    """Returns the devices of a strategy's name, see `RunConfig`; without a GPU, "mirrored" takes all CPUs."""
    if strategy in ("mirrored", "multi_worker"):
        return jax.devices()
    gpus = [device for device in jax.local_devices() if device.platform != "cpu"]
    return gpus if strategy == "auto" and len(gpus) > 1 else jax.local_devices()[:1]


def device_memory(device: jax.Device) -> int:
    """Returns the memory of a device in bytes; of a CPU, that of the machine."""
    statistics = device.memory_stats() or {}
    return statistics.get("bytes_limit") or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def join_processes() -> None:
    """Waits for the other processes of a training.

    Raises:
        T2TError: the environment does not name them, or they do not answer in time.
    """
    if "TF_CONFIG" in os.environ and COORDINATOR not in os.environ:
        raise T2TError(f"TF_CONFIG is TensorFlow's, and KERAS_BACKEND is jax: {HELP}")
    seconds = int(os.environ.get(TIMEOUT, "300"))
    try:
        own: dict[str, Any] = {
            "coordinator_address": os.environ.get(COORDINATOR),
            "num_processes": int(os.environ[PROCESSES]) if PROCESSES in os.environ else None,
            "process_id": int(os.environ[PROCESS]) if PROCESS in os.environ else None,
        }
        if own["coordinator_address"] and own["process_id"]:
            _wait_for(own["coordinator_address"], seconds)
        _initialize(own, seconds)
    except ValueError as error:
        raise T2TError(f"--strategy=multi_worker: {str(error).splitlines()[0]}; {HELP}") from error
    except (OSError, RuntimeError) as error:
        address = os.environ.get(COORDINATOR, "the coordinator")
        raise T2TError(
            f"--strategy=multi_worker: not all processes have met at {address} within {seconds} s: start the "
            f"same command on all machines, and check {COORDINATOR}"
        ) from error


def _wait_for(address: str, seconds: float) -> None:
    """Waits until a server listens there: JAX would end the process without an error, but a trace.

    Raises:
        OSError: none does within so many seconds.
        ValueError: the address is not HOST:PORT.
    """
    host, _, port = address.rpartition(":")
    end = time.monotonic() + seconds
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS):
                return
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(CONNECT_SECONDS / 10)


def _initialize(own: dict[str, Any], seconds: float) -> None:
    """Starts JAX's service, or client, in a thread: at the end of its own time, it would end this process.

    Raises:
        RuntimeError: the other processes have not come within so many seconds; and as JAX.
    """
    errors: list[Exception] = []

    def initialize() -> None:
        try:
            jax.distributed.initialize(**own, initialization_timeout=int(seconds) + MORE_SECONDS)
        except Exception as error:  # for the thread that waits
            errors.append(error)

    thread = threading.Thread(target=initialize, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if thread.is_alive():
        raise RuntimeError("the other processes have not come")


class State(NamedTuple):
    """All that a step changes, on the devices.

    Attributes:
        weights: that are trained.
        others: random states, and weights that are not trained.
        optimizer: that of the optimizer.
    """

    weights: list[jax.Array]
    others: list[jax.Array]
    optimizer: OptimizerState


class JaxEngine(Engine):
    """A compiled step on all devices.

    Args:
        config: reads `strategy`, `shard_optimizer` and `packed`.

    Raises:
        T2TError: the other processes of a "multi_worker" training cannot be reached.
    """

    pads_to_bucket = True

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        if config.strategy == "multi_worker":
            join_processes()
        devices = devices_of(config.strategy)
        self.replicas = len(devices)
        self.several = jax.process_count() > 1
        self.chief = jax.process_index() == 0
        self._mesh = Mesh(np.array(devices), (AXIS,))
        self._everywhere = NamedSharding(self._mesh, PartitionSpec())
        self._split = NamedSharding(self._mesh, PartitionSpec(AXIS))
        self._elements: Prefetch | None = None
        keep_programs()
        self._config = config
        self._shards_optimizer = config.shard_optimizer and self.replicas > 1

    def prepare(self, model: TrainingTransformer) -> None:
        self._model = model
        model.loss_sums = in_blocks(model.loss_sums, self._mesh)
        release(gradient_sums(model.optimizer))  # which are in the state

    def largest_batch(self, hparams: HParams, build: Build) -> HParams:
        memory = device_memory(self._mesh.devices.flat[0])
        tokens = hparams.effective_batch_size or hparams.batch_size * self.replicas
        most = -(-tokens // self.replicas)
        best, size = None, min(max(FIRST, hparams.max_length), most)
        while True:
            tried = hparams.replace(batch_size=size, effective_batch_size=tokens)
            self.prepare(build(tried, accumulation(tried, self.replicas)))
            if self.step_memory(tried) > (1 - MARGIN) * memory:
                break
            best = tried
            if size == most:
                break
            size = min(2 * size, most)
        if best is None:
            raise T2TError(
                f"batch_size=auto: a batch of {size:,} tokens needs more than the {readable_size(memory)} of "
                "the device: try --shard_optimizer, --precision=mixed_bfloat16 or a lower max_length"
            )
        return best.replace(batch_size=-(-most // -(-most // best.batch_size)))  # equal parts of an update

    def step_memory(self, hparams: HParams) -> int:
        """Estimates the memory of each device in bytes, by XLA, in a step of the longest sentences."""
        estimate = self.compile_step(*packed_shape(hparams, self.replicas)).memory_analysis()
        assert estimate, "CPUs and GPUs have one"
        held = estimate.argument_size_in_bytes + estimate.output_size_in_bytes - estimate.alias_size_in_bytes
        return held + estimate.temp_size_in_bytes

    def start(self, batches: TrainingBatches) -> Callable[[], StepLogs]:
        state = self._first_state()
        shardings = self._shardings(state)
        self._state = jax.tree.map(self._put, state, shardings)
        self._step = self._jitted(shardings)
        self._gather = jax.jit(lambda state: state, out_shardings=self._everywhere)
        self._elements = elements = Prefetch(batches.elements(), self._place, BATCHES_AHEAD)
        self.synchronize()  # the model's own copies of the state are free
        if batches.settings.packed:  # and have one shape, which is compiled while the first ones are read
            batch = self._batch_of(*packed_shape(self._model.hparams, self.replicas), batches.weighted)
            self._step.lower(self._state, batch).compile()

        def step() -> StepLogs:
            self._state, logs = self._step(self._state, next(elements))
            return logs

        return step

    def fetch(self, logs: Sequence[StepLogs]) -> list[StepLogs]:
        return [StepLogs(*(value.item() for value in one)) for one in jax.device_get(list(logs))]

    def synchronize(self) -> None:
        model, optimizer = self._model, self._state.optimizer
        if self._shards_optimizer:
            optimizer = self._gather(optimizer)
        pairs = [
            *zip(model.trainable_variables, self._state.weights, strict=True),
            *zip(model.non_trainable_variables, self._state.others, strict=True),
            *optimizer.of_variables(model.optimizer),
        ]
        for variable, array in pairs:
            variable.assign(array.addressable_data(0))
        model.optimizer.set_updates(int(optimizer.updates.addressable_data(0)))
        model.optimizer.set_loss_scale(*(value.addressable_data(0).item() for value in optimizer.loss_scale))

    def all_reduce_max(self, value: int) -> int:
        if not self.several:
            return value
        return int(np.max(multihost_utils.process_allgather(np.array(value))))

    def is_memory_full(self, error: Exception) -> bool:
        return isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)

    def is_worker_lost(self, error: Exception) -> bool:
        is_of_jax = isinstance(error, jax.errors.JaxRuntimeError)
        return self.several and is_of_jax and any(sign in str(error) for sign in LOST)

    def stop(self) -> None:
        if self._elements:
            self._elements.close()

    def compile_step(self, rows: int, length: int) -> jax.stages.Compiled:
        """Compiles the step of a batch of sentences of one length, without computing anything."""
        state = jax.eval_shape(self._first_state)
        return self._jitted(self._shardings(state)).lower(state, self._batch_of(rows, length)).compile()

    def _batch_of(self, rows: int, length: int, weighted: bool = False) -> dict[str, jax.ShapeDtypeStruct]:
        """Returns the shapes of a batch, in which each token may have a weight of its own."""
        is_packed = packs(self._config, self._model.hparams, self.pads_to_bucket)
        names = (*SIDES, *SEGMENTS) if is_packed else SIDES
        array = partial(jax.ShapeDtypeStruct, sharding=self._split)
        batch = dict.fromkeys(names, array((rows, length), "int32"))
        batch["weights"] = array((rows, length if weighted else 1), "float32")
        if self._model.hparams.guided_alignment_weight:
            batch["alignments"] = array((rows, length, length), "float32")
        return batch

    def _first_state(self) -> State:
        model = self._model
        weights = [weight.value for weight in model.trainable_variables]
        others = [variable.value for variable in model.non_trainable_variables]
        return State(weights, others, first_state(model.optimizer))

    def _jitted(self, shardings: State) -> Any:
        inputs, outputs = (shardings, self._split), (shardings, self._everywhere)
        return jax.jit(self._train_step, donate_argnums=0, in_shardings=inputs, out_shardings=outputs)

    def _train_step(self, state: State, batch: Batch) -> tuple[State, StepLogs]:
        gradient = jax.value_and_grad(self._losses, has_aux=True)
        scale = state.optimizer.loss_scale.scale
        (_, (loss, plain, others)), gradients = gradient(state.weights, state.others, scale, batch)
        weights, new = apply_gradients(self._model.optimizer, state.weights, gradients, state.optimizer)
        return State(weights, others, new), StepLogs(loss, plain, new.updates, new.loss_scale.scale)

    def _losses(self, weights: Any, others: Any, scale: Any, batch: Batch) -> Any:
        """Returns the loss times `scale`; and the loss, the plain cross-entropy, and the new `others`.

        Weights are scaled, and not the loss, since gradients in float16 are computed along with it.
        """
        x = {name: array for name, array in batch.items() if name != "weights"}
        targets = x["targets"]
        token_weights = jnp.where(targets != 0, batch["weights"] * scale, 0.0)
        model = self._model
        variables = [*model.trainable_variables, *model.non_trainable_variables]
        mapping = list(zip(variables, [*weights, *others], strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            loss, plain = model.token_losses(x, targets, model(x, training=True), token_weights)
        others = [scope.get_current_value(variable) for variable in model.non_trainable_variables]
        return loss, (loss / scale, plain / scale, others)

    def _shardings(self, state: State) -> State:
        """Returns where each array of the state is: everywhere, or a part of it on each device."""
        everywhere = jax.tree.map(lambda _: self._everywhere, state)
        if not self._shards_optimizer:
            return everywhere
        return everywhere._replace(optimizer=jax.tree.map(self._sharding, state.optimizer))

    def _sharding(self, array: jax.Array) -> NamedSharding:
        """Splits the first axis that the number of devices divides."""
        axes = [axis for axis, size in enumerate(array.shape) if size % self.replicas == 0]
        if not axes:
            return self._everywhere
        return NamedSharding(self._mesh, PartitionSpec(*(None,) * axes[0], AXIS))

    def _place(self, element: Element) -> Batch:
        """Copies a batch to the devices, each of which gets its rows."""
        weights, rows = element["weights"], len(element["inputs"])
        element = element | {"weights": np.broadcast_to(weights, (rows, weights.shape[1]))}
        return {name: self._put(array, self._split) for name, array in element.items()}

    def _put(self, array: Any, sharding: NamedSharding) -> jax.Array:
        """Copies an array that all processes have to the devices."""
        array = np.asarray(array)
        if not self.several:
            return jax.device_put(array, sharding)
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


class Prefetch:
    """An iterator over `place(element)` of each element, which a thread computes in advance.

    Args:
        elements: endless.
        place: called with each.
        ahead: how many are made in advance.
    """

    def __init__(self, elements: Iterator[Any], place: Callable[[Any], Any], ahead: int) -> None:
        self._thread = ThreadPoolExecutor(1, "batches")
        self._make = lambda: place(next(elements))
        self._ready = deque(self._thread.submit(self._make) for _ in range(ahead))

    def __next__(self) -> Any:
        """Returns the next one; raises the error that ended the elements."""
        self._ready.append(self._thread.submit(self._make))
        return self._ready.popleft().result()

    def close(self) -> None:
        """Ends the thread, and waits for it."""
        self._thread.shutdown(cancel_futures=True)
