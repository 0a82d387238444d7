"""The optimizers that are built in.

Each takes the hyperparameters, and imports Keras when it is called, as `schedule_factors` do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from t2t_revival.registration import register_optimizer

if TYPE_CHECKING:
    from t2t_revival.hparams.hparams import HParams


@register_optimizer
def adam(h: HParams) -> Any:
    """Adam (section 5.3; Kingma and Ba, 2015)."""
    from keras import optimizers

    return optimizers.Adam(
        beta_1=h.optimizer_adam_beta1, beta_2=h.optimizer_adam_beta2, epsilon=h.optimizer_adam_epsilon
    )
