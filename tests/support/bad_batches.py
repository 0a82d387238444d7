"""Training on a copy task some of whose micro-batches are bad: for the tests of skipped updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_revival import RunConfig
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.data.batching import TrainingBatches
from t2t_revival.training.events import NoteEvent
from tests.support import copy_shards, copy_task

HPARAMS = copy_shards.HPARAMS.replace(layer_prepostprocess_dropout=0.0, batch_size=128, train_steps=4)
NAN, INF, HUGE = (np.array([[weight]], np.float32) for weight in (np.nan, np.inf, 1e25))  # of all tokens


@contextmanager
def changed(change: Callable[[int, Any], Any]) -> Iterator[None]:
    """Lets `change` replace, in the block, each element of the first epoch, counted from 1, or None of it."""
    elements = TrainingBatches.elements

    def other(self: TrainingBatches) -> Iterator[Any]:
        for number, element in enumerate(elements(self), 1):
            position, _ = self._history[number]
            element = element if position.epoch else change(position.batch, element)
            if element is not None:
                yield element

    TrainingBatches.elements = other  # type: ignore[method-assign]
    try:
        yield
    finally:
        TrainingBatches.elements = elements  # type: ignore[method-assign]


def weighted(weights: dict[int, np.ndarray]) -> Any:
    """Elements with those numbers get those weights."""
    return changed(lambda number, element: {**element, "weights": weights.get(number, element["weights"])})


def without(numbers: set[int]) -> Any:
    """Elements with those numbers do not come."""
    return changed(lambda number, element: None if number in numbers else element)


def trained(shard: Path, out: Path, **config: Any) -> tuple[dict[str, np.ndarray], list[str], Any]:
    """The arrays at the end of a training, the notes that it gave, and its result."""
    notes: list[str] = []
    hparams = config.pop("hparams", HPARAMS)
    result = copy_task.train(
        [shard],
        hparams,
        copy_shards.VOCAB,
        RunConfig(out, **config),
        on_event=lambda event: notes.append(event.text) if isinstance(event, NoteEvent) else None,
    )
    return checkpoints.load(checkpoints.list_checkpoints(out)[-1].path)[0], notes, result


def main(folder: Path, devices: int) -> None:
    """Compares on logical CPU devices, which only a new process can have."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * devices)
    (shard,) = copy_shards.write_shards(folder, shards=1, examples=300)
    for accumulate in (1, 2):
        with copy_task.shared_models():
            compare(shard, folder / str(accumulate), devices, accumulate)
        print(f"the same, of {accumulate} micro-batches")


def compare(shard: Path, folder: Path, devices: int, accumulate: int) -> None:
    strategy = "mirrored" if devices > 1 else "default"
    config: dict[str, Any] = {
        "strategy": strategy,
        "hparams": HPARAMS.replace(effective_batch_size=128 * devices * accumulate),
    }
    bad = 2 * accumulate + 1  # the first micro-batch of the third update
    with weighted({bad: NAN}):
        found, notes, _ = trained(shard, folder / "bad", **config)
    with without(set(range(bad, bad + accumulate))):
        expected, _, _ = trained(shard, folder / "good", **config)
    assert len(notes) == 1, notes
    assert notes[0].startswith("update 3 skipped: loss is nan (1 in a row"), notes
    copy_shards.assert_same(found, expected)
