"""The flags of a training that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from t2t_revival import registry
from t2t_revival.cli.support.flags import flag, group
from t2t_revival.cli.support.run_flags import RunFlags
from t2t_revival.errors import T2TError
from t2t_revival.hparams.hparams import HParams
from t2t_revival.metrics.metric import metric_of
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import Problem
from t2t_revival.training.run_config import AUTO, RunConfig

RUN_CONFIG_FLAGS = {  # T2T's names of the fields of RunConfig
    "strategy": "strategy",
    "shard_optimizer": "shard_optimizer",
    "num_buckets": "num_buckets",
    "precision": "precision",
    "xla": "xla",
    "random_seed": "seed",
    "local_eval_frequency": "eval_frequency",
    "save_checkpoints_secs": "save_seconds",
    "max_nonfinite_steps": "max_nonfinite_steps",
    "keep_checkpoint_max": "keep_checkpoints",
    "keep_best": "keep_best",
    "best_metric": "best_score",
    "log_step_count_steps": "log_steps",
    "eval_early_stopping_steps": "patience",
    "eval_early_stopping_metric": "patience_score",
    "eval_early_stopping_metric_delta": "min_delta",
}
BOUNDS = {"random_seed": (0, 2**32 - 1), "max_nonfinite_steps": (1, None)}
AUTO_BATCH_SIZE = "batch_size=auto"
NAMES = (*RUN_CONFIG_FLAGS, "hparams", "train_steps", "eval_bleu_sentences")


@dataclass(frozen=True)
class TrainingFlags(RunFlags):
    """The flags of a training; the output_dir of `config` is not the run's."""

    config: RunConfig = group(RunConfig(Path()), RUN_CONFIG_FLAGS, BOUNDS)
    hparams: str = flag(
        "",
        'Changes to the hparams set, such as "batch_size=2048,num_heads=4". "batch_size=auto" is the largest '
        "that fits a device's memory (KERAS_BACKEND=jax).",
    )
    train_steps: int = flag(0, "Number of updates; 0 takes that of the hparams set.")
    eval_bleu_sentences: int = flag(
        200,
        "Dev sentences, of each corpus of a mixture, that are decoded for BLEU or F1; 0 decodes none.",
    )

    @property
    def metrics(self) -> dict[str, str]:
        """The metrics that flags name, by the flags; each may be that of one corpus, as bleu/news."""
        return {
            "eval_early_stopping_metric": self.config.patience_score,
            "best_metric": self.config.best_score,
        }

    @property
    def is_batch_size_auto(self) -> bool:
        """Returns whether --hparams asks for the largest `batch_size` that fits."""
        return any(part.strip() == AUTO_BATCH_SIZE for part in self.hparams.split(","))

    def check_metrics(self, problem: Problem) -> None:
        """Checks the flags that name a metric.

        Raises:
            T2TError: it is none of the problem's, or is not measured.
        """
        for name, value in self.metrics.items():
            metric, names = metric_of(value), problem.eval_metrics()
            if metric.name == AUTO:
                continue
            if metric.name not in names:
                known = ", ".join(names)
                raise T2TError(f"--{name}={value}: not a metric of {problem.name}; give one of {known}")
            if not metric.of_each_corpus and metric.name != value:
                raise T2TError(f"--{name}={value}: {metric.name} is measured of all corpora together")
            if metric.outputs and not self.eval_bleu_sentences:
                raise T2TError(f"--{name}={value} needs --eval_bleu_sentences above 0")

    def run_hparams(self, folder: ModelFolder) -> HParams:
        """Returns the hparams of a run that is resumed, or else the named set, as the flags change them."""
        named = registry.hparams(self.named_set())
        return self._overridden(folder.hparams if folder.has_run else named)

    def changed(self, hparams: HParams) -> HParams:
        """Returns the hparams that a training with these flags has."""
        return super().changed(self._overridden(hparams))

    def _overridden(self, hparams: HParams) -> HParams:
        overrides = [part for part in self.hparams.split(",") if part.strip() != AUTO_BATCH_SIZE]
        hparams = hparams.override(",".join(overrides))
        return hparams.replace(train_steps=self.train_steps) if self.train_steps else hparams
