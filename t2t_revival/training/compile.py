"""Building and compiling a model for training, under any Keras backend."""

from __future__ import annotations

import re

from t2t_revival.checkpoints.adapters import is_adapter, weight_path
from t2t_revival.checkpoints.directory import check_paths
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.training.model import TrainingTransformer
from t2t_revival.training.optimizer import make_optimizer
from t2t_revival.utils.keras_config import check_usable

PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")


def build_model(
    hparams: HParams,
    vocab_size: int,
    precision: str = "float32",
    num_parallel_batches: int = 1,
    target_vocab_size: int | None = None,
) -> TrainingTransformer:
    """Returns a `TrainingTransformer` that computes in `precision`; its weights are float32.

    Raises:
        T2TError: `precision` is not one of `PRECISIONS`, or Keras's configuration is not usable.
    """
    check_usable()
    if precision not in PRECISIONS:
        raise T2TError(f"--precision={precision} is not one of {', '.join(PRECISIONS)}")
    own = {"target_vocab_size": target_vocab_size, "dtype": precision}
    return TrainingTransformer(hparams, vocab_size, num_parallel_batches, **own)


def compile_model(model: TrainingTransformer, hparams: HParams, accumulate: int = 1) -> TrainingTransformer:
    """Compiles a model with the optimizer of the weights that are trained; in float16, the loss is scaled.

    Args:
        model: compiled in place, and returned.
        hparams: reads `freeze`, `lora_rank` and what `make_optimizer` reads.
        accumulate: number of micro-batches of an update.

    Raises:
        T2TError: as `freeze`; or checkpoints could not tell two weights or two moments apart.
    """
    if hparams.lora_rank:
        for weight in model.trainable_variables:
            weight.trainable = is_adapter(weight.path)
    freeze(model, hparams.freeze)
    scales_loss = model.dtype_policy.name == "mixed_float16"
    model.compile(make_optimizer(hparams, accumulate, scales_loss), auto_scale_loss=False)
    model.optimizer.build(model.trainable_variables)
    check_paths(model)
    return model


def freeze(model: TrainingTransformer, pattern: str) -> None:
    """Has training leave the weights as they are whose paths have a match of a regular expression.

    The path of an adapter is that of its matrix.

    Raises:
        T2TError: no weight has one, or every weight.
    """
    if not pattern:
        return
    weights = model.trainable_variables
    frozen = [weight for weight in weights if re.search(pattern, weight_path(weight.path))]
    if not frozen:
        raise T2TError(f"--freeze={pattern} matches no weight; they have paths such as {weights[0].path}")
    if len(frozen) == len(weights):
        raise T2TError(f"--freeze={pattern} matches all weights: nothing would be trained")
    for weight in frozen:
        weight.trainable = False
