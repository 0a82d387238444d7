"""A copy task, whose target is its source, and trainings on it, in this process or in others."""

from __future__ import annotations

import functools
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

from t2t_revival import HParams, RunConfig
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.cli.make_tf_configs import tf_configs
from t2t_revival.model_folder import ModelFolder
from t2t_revival.training import trainer
from t2t_revival.training.engines import tensorflow_engine
from t2t_revival.training.engines.engine import Engine
from t2t_revival.training.engines.tensorflow_engine import TensorFlowEngine, make_strategy
from t2t_revival.training.events import OnEvent, StepEvent, ignore_event
from t2t_revival.training.monitor import Evaluate
from t2t_revival.training.state import Fingerprints
from t2t_revival.training.trainer import Result, Trainer, TrainingData, new_model
from tests.support.copy_shards import VOCAB, split_of
from tests.support.processes import TIMEOUT, Process


@functools.cache
def _strategy(name: str) -> tf.distribute.Strategy:
    """The strategy of a name; a process can make that of several workers only once."""
    return make_strategy(name)


def _engine(config: RunConfig) -> Engine:
    return TensorFlowEngine(config, _strategy(config.strategy))


def train(
    shards: list[Path],
    hparams: HParams,
    vocab_size: int,
    config: RunConfig,
    evaluate: Evaluate | None = None,
    on_event: OnEvent = ignore_event,
    fingerprints: Fingerprints | None = None,
) -> Result:
    """Runs a `Trainer` as an `Experiment` does: the chief holds the lock of output_dir."""
    engine = _engine(config)
    data = TrainingData(split_of(shards), vocab_size, fingerprints=fingerprints or Fingerprints())
    with ModelFolder(config.output_dir).lock() if engine.chief else nullcontext():
        return Trainer(data, hparams, config, engine, evaluate, on_event).run()


@contextmanager
def shared_models() -> Iterator[dict[Any, Any]]:
    """Lends one compiled model to all trainings in the block that are compiled alike, one after another.

    Each training finds all variables, the optimizer's too, as they were when the model was built; only the
    graph is kept, whose making takes ten times as long as such a training. Yields the models: a training
    after `clear` builds its own.
    """
    models: dict[Any, Any] = {}

    def shared(data: TrainingData, hparams: HParams, config: RunConfig, *sizes: int) -> Any:
        # No graph has these: the first is for schedules not used here, the others make the first of `sizes`.
        alike = hparams.replace(train_steps=1, effective_batch_size=0, batch_size=512)
        settings = (config.precision, config.xla, config.seed, config.num_parallel_batches)
        key = (alike, data.vocab_size, settings, sizes, tf.distribute.get_strategy())
        if key not in models:
            model = new_model(data, hparams, config, *sizes)
            variables = [*model.variables, *model.optimizer.variables, *model.metrics_variables]
            models[key] = model, [(variable, np.array(variable)) for variable in variables]
        model, at_first = models[key]
        for variable, value in at_first:
            variable.assign(value)
        return model

    with (
        mock.patch.object(trainer, "new_model", shared),
        mock.patch.object(tensorflow_engine, "make_step", functools.cache(tensorflow_engine.make_step)),
        # TensorFlow's own seed, from which nothing is drawn here, drops what it has prepared of all graphs.
        mock.patch.object(tf.random, "set_seed"),
    ):
        yield models


def final_arrays(folder: Path) -> dict[str, np.ndarray]:
    """Arrays of the newest checkpoint."""
    return checkpoints.load(checkpoints.list_checkpoints(folder)[-1].path)[0]


def train_and_list_losses(
    shards: list[Path],
    hparams: HParams,
    vocab_size: int,
    config: RunConfig,
    on_step: Callable[[int], None] = lambda step: None,
) -> tuple[list[float], Result]:
    """The losses of all updates of a training, and its result."""
    losses: list[float] = []

    def on_event(event: object) -> None:
        if isinstance(event, StepEvent):
            losses.append(event.loss)
            on_step(event.step)

    return losses, train(shards, hparams, vocab_size, config, on_event=on_event)


@dataclass(frozen=True)
class Job:
    """A training for another process.

    Attributes:
        output_dir: gets the checkpoints.
        shards: the data.
        hparams: for example, the number of updates.
        config: other arguments of `RunConfig`.
    """

    output_dir: Path
    shards: list[Path]
    hparams: HParams
    config: dict[str, Any] = field(default_factory=dict)


def run_jobs(devices: int, jobs: list[Job]) -> None:
    """Trains with so many logical CPU devices, which only a new process can have, and prints JSON of each."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * devices)
    for job in jobs:
        losses, result = train_and_list_losses(
            job.shards,
            job.hparams,
            VOCAB,
            RunConfig(job.output_dir, log_steps=1, **job.config),
            lambda step: print("step", step, flush=True),
        )
        outcome = {"losses": losses, "step": result.step, "stopped_by": result.stopped_by}
        print(json.dumps(outcome), flush=True)


def start(folder: Path, devices: int, jobs: list[Job], **environment: str | None) -> Process:
    """Trainings one after another in a process that has so many logical CPU devices."""
    return Process(folder, run_jobs, [devices, jobs], environment)


def start_workers(folder: Path, count: int, jobs: list[Job]) -> list[Process]:
    """Trainings one after another in several processes, the chief's first."""
    jobs = [replace(job, config={**job.config, "strategy": "multi_worker"}) for job in jobs]
    configs = tf_configs([f"127.0.0.1:{_free_port()}" for _ in range(count)])
    return [
        start(folder / f"worker {number}", 1, jobs, TF_CONFIG=config) for number, config in enumerate(configs)
    ]


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def finished(process: Process, timeout: float = TIMEOUT) -> list[dict[str, Any]]:
    """Waits for a process of trainings: what it printed of each."""
    assert process.wait(timeout) == 0, process.said
    return [json.loads(line) for line in process.out.splitlines() if line.startswith("{")]
