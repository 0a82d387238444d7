"""Named sets of hyperparameters. Importing this package registers all of them."""

from t2t_revival.hparams import auto, base, marian, optimizers, schedule_factors, t2t
from t2t_revival.hparams.hparams import HParams

__all__ = ["HParams", "auto", "base", "marian", "optimizers", "schedule_factors", "t2t"]
