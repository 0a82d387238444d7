"""Trainings under JAX, one after another, in a process in which TensorFlow cannot be imported.

Its argument is a JSON file of jobs, each {"output_dir", "shards", "hparams", "config", "devices", "weights",
"block"}: "block" is for the tokens of a block of the loss.
It prints a line of JSON for each: its losses, its last step, the notes and the compilations.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.modules["tensorflow"] = None  # type: ignore[assignment]  # any import of it fails

import jax  # noqa: E402
import numpy as np  # noqa: E402

from t2t_revival import RunConfig  # noqa: E402
from t2t_revival.data.batching import TrainingBatches  # noqa: E402
from t2t_revival.training.engines import jax_engine  # noqa: E402
from t2t_revival.training.engines.jax_update import BLOCK, in_blocks  # noqa: E402
from t2t_revival.training.events import NoteEvent, StepEvent  # noqa: E402
from t2t_revival.training.trainer import Trainer, TrainingData  # noqa: E402
from tests.support.copy_shards import HPARAMS, VOCAB, split_of  # noqa: E402


def main(jobs: list[dict[str, Any]]) -> None:
    """Runs the jobs."""
    for job in jobs:
        if job.get("devices"):
            jax_engine.devices_of = lambda _, count=job["devices"]: jax.devices()[:count]
        jax_engine.in_blocks = partial(in_blocks, size=job.get("block", BLOCK))
        print(json.dumps(run(job)), flush=True)


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Runs a job; its "weights" replace those of its first batches, by number from 1."""
    losses: list[float] = []
    notes: list[str] = []

    def on_event(event: object) -> None:
        if isinstance(event, StepEvent):
            losses.append(event.loss)
        elif isinstance(event, NoteEvent):
            notes.append(event.text)

    elements = TrainingBatches.elements
    weights = {int(number): np.float32([[weight]]) for number, weight in job.get("weights", {}).items()}

    def changed(self: TrainingBatches) -> Any:
        for number, element in enumerate(elements(self), 1):
            yield {**element, "weights": weights.get(number, element["weights"])}

    TrainingBatches.elements = changed  # type: ignore[method-assign]
    config = RunConfig(Path(job["output_dir"]), **{"log_steps": 1, "packed": False, **job["config"]})
    data = TrainingData(split_of([Path(shard) for shard in job["shards"]]), VOCAB)
    engine = jax_engine.JaxEngine(config)
    result = Trainer(data, HPARAMS.replace(**job["hparams"]), config, engine, on_event=on_event).run()
    TrainingBatches.elements = elements  # type: ignore[method-assign]
    counts = {"step": result.step, "skipped": result.skipped_updates, "overflows": result.overflows}
    return {
        "losses": losses,
        "notes": notes,
        "compilations": engine._step._cache_size(),
        "tokens": result.seen.target_tokens,
        **counts,
    }


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
