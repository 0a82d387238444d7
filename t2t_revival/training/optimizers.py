"""The optimizers that are built in, by the names that the hparam `optimizer` takes.

Each takes the hyperparameters, and imports Keras when it is called, so that names can be checked without the
second or more that this takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2t_revival.registry import register_optimizer

if TYPE_CHECKING:
    from t2t_revival.hparams.hparams import HParams
    from t2t_revival.training.optimizer import TrainingOptimizer


@register_optimizer
def adam(h: HParams) -> TrainingOptimizer:
    """Adam (section 5.3; Kingma and Ba, 2015)."""
    from t2t_revival.training.optimizer import Adam

    return Adam(
        beta_1=h.optimizer_adam_beta1, beta_2=h.optimizer_adam_beta2, epsilon=h.optimizer_adam_epsilon
    )
