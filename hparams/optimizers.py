"""The optimizers that are built in: the paper's Adam, and others of Keras by their names.

Each takes the hyperparameters, and imports Keras when it is called, as `schedule_factors` do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from t2t_revival.registration import register_optimizer

if TYPE_CHECKING:
    from t2t_revival.hparams.hparams import HParams

ADAMS = ("beta_1", "beta_2", "epsilon")  # settings whose values are those of hparams
FROM_KERAS: dict[str, tuple[str, tuple[str, ...], dict[str, Any], str]] = {  # class, Adam's settings, others
    "adam": ("Adam", ADAMS, {}, "Adam (section 5.3; Kingma and Ba, 2015)."),
    "adamax": ("Adamax", ADAMS, {}, "Adam by the largest gradients (Kingma and Ba, 2015, section 7.1)."),
    "lamb": ("Lamb", ADAMS, {}, "Adam in proportion to weights, for large batches (You et al., 2020)."),
    "muon": (
        "Muon",
        ("adam_beta_1", "adam_beta_2", "epsilon"),
        {"weight_decay": None, "adam_weight_decay": None},
        "Orthogonal steps for matrices, Adam's for embeddings, norms and biases (Jordan et al., 2024).",
    ),
    "adafactor": ("Adafactor", (), {}, "Adam's scale by rows and columns alone (Shazeer and Stern, 2018)."),
    "lion": ("Lion", (), {}, "Steps by the sign of a mean of gradients (Chen et al., 2023)."),
    "rmsprop": ("RMSprop", (), {}, "Gradients divided by a mean of their size (Tieleman and Hinton, 2012)."),
    "sgd": ("SGD", (), {"momentum": 0.9}, "Plain gradients with momentum."),
}


def register_of_keras(
    name: str, kind: str, adams: tuple[str, ...], others: dict[str, Any], summary: str
) -> None:
    """Registers one of Keras's optimizers; `adams` are settings that have the values of Adam's hparams."""

    def make(h: HParams) -> Any:
        from keras import optimizers

        settings = zip(
            adams, (h.optimizer_adam_beta1, h.optimizer_adam_beta2, h.optimizer_adam_epsilon), strict=False
        )
        return getattr(optimizers, kind)(**dict(settings), **others)

    make.__name__, make.__doc__ = name, summary
    register_optimizer(make)


for _name, _row in FROM_KERAS.items():
    register_of_keras(_name, *_row)
