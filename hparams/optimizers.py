"""The optimizers that are built in: the paper's Adam, and others of Keras by their names.

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

    return optimizers.Adam(**_adam_settings(h))


@register_optimizer
def adamax(h: HParams) -> Any:
    """Adam by the largest gradients (Kingma and Ba, 2015, section 7.1)."""
    from keras import optimizers

    return optimizers.Adamax(**_adam_settings(h))


@register_optimizer
def lamb(h: HParams) -> Any:
    """Adam with steps in proportion to each weight's norm, for large batches (You et al., 2020)."""
    from keras import optimizers

    return optimizers.Lamb(**_adam_settings(h))


@register_optimizer
def muon(h: HParams) -> Any:
    """Orthogonal steps for matrices, Adam for embeddings, norms and biases (Jordan et al., 2024)."""
    from keras import optimizers

    return optimizers.Muon(
        adam_beta_1=h.optimizer_adam_beta1,
        adam_beta_2=h.optimizer_adam_beta2,
        epsilon=h.optimizer_adam_epsilon,
        weight_decay=None,
        adam_weight_decay=None,
    )


@register_optimizer
def adafactor(h: HParams) -> Any:
    """Adam's scale from sums of rows and columns: little memory (Shazeer and Stern, 2018)."""
    from keras import optimizers

    return optimizers.Adafactor()


@register_optimizer
def lion(h: HParams) -> Any:
    """Steps by the sign of a mean of gradients: a tenth of Adam's rate (Chen et al., 2023)."""
    from keras import optimizers

    return optimizers.Lion()


@register_optimizer
def rmsprop(h: HParams) -> Any:
    """Gradients divided by a mean of their size (Tieleman and Hinton, 2012)."""
    from keras import optimizers

    return optimizers.RMSprop()


@register_optimizer
def sgd(h: HParams) -> Any:
    """Plain gradients with a momentum of 0.9."""
    from keras import optimizers

    return optimizers.SGD(momentum=0.9)


def _adam_settings(h: HParams) -> dict[str, float]:
    return {
        "beta_1": h.optimizer_adam_beta1,
        "beta_2": h.optimizer_adam_beta2,
        "epsilon": h.optimizer_adam_epsilon,
    }
