"""Everything private of Keras that the package relies on, each with a test: Keras 3.15 offers no public way.

A new minor version of Keras is safe to use when `tests/utils/test_keras_hooks.py` passes under it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras.src.backend.common import global_state
from keras.src.utils.rng_utils import GLOBAL_RANDOM_SEED


def build_sublayers(layer: keras.layers.Layer) -> None:
    """Builds the layers that are attributes of `layer`: their weights exist then, named after it.

    Keras itself builds a sub-layer at its first call.
    """
    for sublayer in layer._flatten_layers(include_self=False, recursive=False):
        if not sublayer.built:
            sublayer.build()


def is_autocast(variable: keras.Variable) -> bool:
    """Returns whether mixed precision casts a variable where a layer's `call` reads it."""
    return bool(variable._autocast)


def variable_index(optimizer: keras.optimizers.Optimizer, variable: Any) -> int:
    """Returns a variable's place in an optimizer's lists of moments and of accumulated gradients."""
    return int(optimizer._get_variable_index(variable))


def micro_batch_count(optimizer: keras.optimizers.Optimizer) -> Any:
    """Returns the variable that counts micro-batches, of which `iterations` may be a part."""
    return optimizer._iterations


def trained_weights(optimizer: keras.optimizers.Optimizer) -> list[Any]:
    """Returns the weights that an optimizer was built for; an attribute of it would make them its own."""
    return list(optimizer._trainable_variables)


def gradient_sums(optimizer: keras.optimizers.Optimizer) -> list[Any]:
    """Returns the sums of the gradients of an update's micro-batches; an empty list where it has one."""
    return list(optimizer._accumulated_gradients) if optimizer.gradient_accumulation_steps else []


def adam_moments(optimizer: keras.optimizers.Adam, variable: Any) -> tuple[Any, Any]:
    """Returns the moments of a variable's gradients, and of their squares."""
    index = variable_index(optimizer, variable)
    return optimizer._momentums[index], optimizer._velocities[index]


def updates_weights_alone(optimizer: keras.optimizers.Optimizer) -> bool:
    """Returns whether an optimizer's `update_step` is its whole update; Nadam's, for one, is not."""
    kind, base = type(optimizer), keras.optimizers.Optimizer
    return kind._backend_update_step is base._backend_update_step


class OwnUpdate(keras.optimizers.Optimizer):
    """Base class, before one of Keras's optimizers, of one that makes its updates by itself."""

    def update(self, gradients: Any, weights: Any) -> None:
        """Applies the gradients of a micro-batch to weights; by default, as Keras does."""
        super()._backend_apply_gradients(gradients, weights)

    def _backend_apply_gradients(self, grads: Any, trainable_variables: Any) -> None:
        self.update(grads, trainable_variables)


def set_random_seed(seed: int) -> None:
    """Sets the seeds of Keras, Python and NumPy, without importing TensorFlow unless that is the backend.

    Keras's own function imports it wherever it is installed.
    """
    if keras.backend.backend() == "tensorflow":
        keras.utils.set_random_seed(seed)
        return
    random.seed(seed)
    np.random.seed(seed)
    global_state.set_global_attribute(GLOBAL_RANDOM_SEED, seed)


def release(variables: Iterable[keras.Variable]) -> None:
    """Frees the memory of variables that are not used again."""
    for variable in variables:
        variable._value = None


def name_vocabulary(tokenizer: Any, name: str) -> None:
    """Names the vocabulary of a SentencePiece tokeniser of keras_nlp or TensorFlow Text in SavedModels.

    Without a name, TensorFlow loads a SavedModel with two tokenisers as if both had one vocabulary.
    """
    getattr(tokenizer, "_sentence_piece", tokenizer)._model_resource._name = name
