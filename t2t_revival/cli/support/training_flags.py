"""The flags of a training that several commands share: definitions and hyperparameters."""

from __future__ import annotations

from pathlib import Path

from absl import flags

from t2t_revival import registry
from t2t_revival.cli.support import command, run_flags
from t2t_revival.cli.support.field_flags import Bounds, FlagFields, define_fields
from t2t_revival.errors import T2TError
from t2t_revival.hparams.hparams import HParams
from t2t_revival.metrics.metric import metric_of
from t2t_revival.problems.problem import Problem
from t2t_revival.training.run_config import AUTO, RunConfig

RUN_CONFIG_FLAGS: FlagFields = {  # T2T's names of the fields of RunConfig
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
BOUNDS: dict[str, Bounds] = {"random_seed": (0, 2**32 - 1), "max_nonfinite_steps": (1, None)}
AUTO_BATCH_SIZE = "batch_size=auto"
METRIC_FLAGS = ("eval_early_stopping_metric", "best_metric")
NAMES = (*RUN_CONFIG_FLAGS, "hparams", "train_steps", "eval_bleu_sentences")


def define(values: flags.FlagValues) -> None:
    """Adds the flags of a training to a command's, which has `--hparams_set` already."""
    define_fields(values, RunConfig, RUN_CONFIG_FLAGS, BOUNDS)
    command.define(
        values,
        "",
        hparams='Changes to the hparams set, such as "batch_size=2048,num_heads=4". "batch_size=auto" is the '
        "largest that fits a device's memory (KERAS_BACKEND=jax).",
    )
    command.define(values, 0, train_steps="Number of updates; 0 takes that of the hparams set.")
    command.define(
        values,
        200,
        eval_bleu_sentences="Dev sentences, of each corpus of a mixture, that are decoded for BLEU or F1; 0 "
        "decodes none.",
    )


def is_batch_size_auto(values: flags.FlagValues) -> bool:
    """Returns whether --hparams asks for the largest `batch_size` that fits."""
    return any(part.strip() == AUTO_BATCH_SIZE for part in values.hparams.split(","))


def check_metrics(values: flags.FlagValues, problem: Problem) -> None:
    """Checks the flags that name a metric, which may be that of one corpus, as bleu/news.

    Raises:
        T2TError: it is none of the problem's, or is not measured.
    """
    for flag in METRIC_FLAGS:
        metric, names = metric_of(values[flag].value), problem.eval_metrics()
        if metric.name == AUTO:
            continue
        if metric.name not in names:
            known = ", ".join(names)
            raise T2TError(
                f"--{flag}={values[flag].value}: not a metric of {problem.name}; give one of {known}"
            )
        if not metric.of_each_corpus and metric.name != values[flag].value:
            raise T2TError(
                f"--{flag}={values[flag].value}: {metric.name} is measured of all corpora together"
            )
        if metric.outputs and not values.eval_bleu_sentences:
            raise T2TError(f"--{flag}={values[flag].value} needs --eval_bleu_sentences above 0")


def hparams(values: flags.FlagValues, output_dir: Path) -> HParams:
    """Returns the hparams of a run that is resumed, or else the named set, with the flags' overrides."""
    named = registry.hparams(run_flags.hparams_set(values))
    overrides = [part for part in values.hparams.split(",") if part.strip() != AUTO_BATCH_SIZE]
    hparams = (HParams.load(output_dir) or named).override(",".join(overrides))
    return hparams.replace(train_steps=values.train_steps) if values.train_steps else hparams
