"""How a training runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """How a training runs; what it computes is said by the hparams.

    Attributes:
        output_dir: where checkpoints and curves go.
        strategy: see `make_strategy`.
        precision: "float32", "mixed_bfloat16" or "mixed_float16", whose loss is scaled.
        xla: whether XLA compiles the step, once for each bucket of lengths; batches are padded to its bounds.
            On one device only.
        streams: parts of a batch that are computed side by side, where one device trains; pays off on a CPU
            whose operations have a thread each (`intra_op_parallelism_threads`).
        seed: of weights, dropout and the order of the data.
        eval_frequency: updates between two evaluations, each with a checkpoint; 0: only the last.
        save_seconds: seconds between two checkpoints besides these; 0: none besides.
        nonfinite_steps: updates in a row left out because loss or gradients are not finite numbers, after
            which training stops; at least 1.
        keep_checkpoints: how many of the newest checkpoints are kept; 0: all.
        log_steps: updates between two reports; 0: only the first and the last.
        patience: updates without a better score after which training stops; 0: never.
        patience_score: name of that score; lower is better for "loss" and "perplexity".
        patience_delta: by how much a better score must be better.
    """

    output_dir: Path
    strategy: str = "auto"
    precision: str = "float32"
    xla: bool = False
    streams: int = 1
    seed: int = 1
    eval_frequency: int = 1000
    save_seconds: float = 600.0
    nonfinite_steps: int = 10
    keep_checkpoints: int = 20
    log_steps: int = 100
    patience: int = 0
    patience_score: str = "loss"
    patience_delta: float = 0.0
