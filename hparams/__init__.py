"""Named sets of hyperparameters. Importing this package registers all of them."""

from t2t_revival.hparams import base, marian, optimizers, schedule_factors, t2t
from t2t_revival.hparams.hparams import HParams

__all__ = ["HParams", "base", "marian", "optimizers", "schedule_factors", "t2t"]
