"""Named sets of hyperparameters. Importing this package registers all of them."""

from t2t_revival.hparams import base, big, parsing, t2t, table3, tiny
from t2t_revival.hparams.hparams import HParams

__all__ = ["HParams", "base", "big", "parsing", "t2t", "table3", "tiny"]
