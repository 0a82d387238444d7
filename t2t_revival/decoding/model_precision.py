"""Decoding in the precision of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras

if TYPE_CHECKING:
    from t2t_revival.model import Transformer


class InModelPrecision(keras.layers.Layer):
    """Calls a function as if the model called it.

    Under mixed precision, Keras casts weights only within the `__call__` of a layer that has the
    policy. `start_decoding` and `decode_step` are no `__call__`, so that they would compute in float32.
    """

    def __init__(self, model: Transformer, function: Callable[[Any], Any]) -> None:
        super().__init__(dtype=model.dtype_policy, name="beam_search")
        self.function = function

    def call(self, ids: Any) -> Any:
        return self.function(ids)
