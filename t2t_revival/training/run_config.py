"""Configuration of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from t2t_revival.training.warm_start import WarmStart
from t2t_revival.utils.files import path_of

AUTO: Final = "auto"


@dataclass(frozen=True)
class RunConfig:
    """Devices, checkpoints, evaluations and reports of a training; hparams configure model and optimizer.

    `t2t-trainer` generates its flags and their help from these fields.

    Attributes:
        output_dir: folder of checkpoints and curves.
        warm_start: weights to start with where output_dir has no checkpoint; `None` draws them.
        strategy: distribution over devices. "default" uses one device; "mirrored" all GPUs; "auto" is
            "mirrored" where there are several GPUs; "multi_worker" uses all GPUs of the machines in
            TF_CONFIG, see t2t-make-tf-configs.
        shard_optimizer: keep a part of Adam's moments on each device, for those with little memory; for JAX.
        num_buckets: buckets of lengths, for each of which XLA compiles a step; fewer ones pad more. With 0
            they are T2T's, some 20.
        precision: type in which the model computes; weights are always float32. "mixed_float16", for GPUs
            without bfloat16, scales the loss.
        xla: compile the step by XLA, once for each bucket of lengths; pays off on a GPU. For TensorFlow: JAX
            always does.
        num_parallel_batches: parts of a batch that are computed side by side, where one device trains; pays
            off on a CPU whose operations have a thread each (`intra_op_parallelism_threads`).
        seed: seed of the weights, of dropout and of the order of the data.
        eval_frequency: updates between two evaluations, each with a checkpoint. With 0 only the last update
            is evaluated.
        save_seconds: seconds between two checkpoints besides these. With 0 there are none besides.
        max_nonfinite_steps: updates skipped in a row, since loss or gradients are not finite, after which
            training stops; at least 1.
        keep_checkpoints: how many of the newest checkpoints are kept. With 0 all are kept.
        keep_best: how many of the best checkpoints are kept besides, in output_dir/best.
        best_score: dev score that decides which checkpoints are the best: "loss", "perplexity", for which
            lower is better, "accuracy", "bleu" or "f1", of a mixture's corpus "bleu/NAME". "auto" is BLEU or
            F1 where dev sentences are decoded, else the loss.
        log_steps: updates between two reports. With 0 only the first and the last update are reported.
        patience: updates without a better score after which training stops. With 0 it never does.
        patience_score: score that early stopping watches; one of those but "auto".
        min_delta: least improvement of that score that counts as better.
    """

    output_dir: Path
    warm_start: WarmStart | None = None
    strategy: Literal["auto", "default", "mirrored", "multi_worker"] = "auto"
    shard_optimizer: bool = False
    num_buckets: int = 0
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    xla: bool = False
    num_parallel_batches: int = 1
    seed: int = 1
    eval_frequency: int = 1000
    save_seconds: float = 600.0
    max_nonfinite_steps: int = 10
    keep_checkpoints: int = 20
    keep_best: int = 1
    best_score: str = AUTO
    log_steps: int = 100
    patience: int = 0
    patience_score: str = "loss"
    min_delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "output_dir", path_of(self.output_dir, "output_dir"))
