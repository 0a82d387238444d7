"""Section 5.2: the devices of a training, and the steps that they compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras

from t2t_revival.errors import T2TError
from t2t_revival.training.engines.engine import Engine
from t2t_revival.utils.keras_config import JAX, check_usable

if TYPE_CHECKING:
    from t2t_revival.training.run_config import RunConfig

STRATEGIES = ("auto", "default", "mirrored", "multi_worker")


def make_engine(config: RunConfig) -> Engine:
    """Makes the engine of Keras's backend.

    Raises:
        T2TError: there is none, it has no such strategy or options, or Keras's configuration is not usable.
    """
    if config.strategy not in STRATEGIES:
        raise T2TError(f"--strategy={config.strategy} is not one of {', '.join(STRATEGIES)}")
    check_usable()
    if keras.backend.backend() == JAX:
        from t2t_revival.training.engines.jax_engine import JaxEngine

        return JaxEngine(config)
    from t2t_revival.training.engines.tensorflow_engine import TensorFlowEngine

    return TensorFlowEngine(config)
