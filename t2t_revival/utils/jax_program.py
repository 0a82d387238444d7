"""Functions of a model that JAX compiles."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import tree

from t2t_revival.utils.keras_hooks import is_autocast


class JaxProgram:
    """A function of a model, which JAX compiles once for each shape and each static value.

    The weights are read at each call: the model can be trained between calls. Where mixed precision casts a
    weight, it is cast once in a program, not at each position of a loop.

    Args:
        model: has `weights` and `compute_dtype`.
        function: of arrays first and static values then. Returns arrays.
        num_arrays: number of arguments that are arrays, or tuples or dictionaries of them.

    Example:
        program = JaxProgram(model, lambda ids: model(ids), num_arrays=1)
        logits = program(ids)
    """

    def __init__(self, model: Any, function: Callable[..., Any], num_arrays: int) -> None:
        self._model, self._function, self._num_arrays = model, function, num_arrays
        self._programs: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._one_call = threading.Lock()  # a program has all cores, and is compiled by one thread

    def __call__(self, *arguments: Any) -> Any:
        """Returns the function's results as NumPy arrays.

        Raises:
            MemoryError: the device has too little memory.
        """
        import jax

        arrays, static = arguments[: self._num_arrays], arguments[self._num_arrays :]
        with self._one_call:
            if static not in self._programs:
                self._programs[static] = jax.jit(partial(self._run, static))
            try:
                values = [weight.value for weight in self._model.weights]
                return tree.map_structure(np.asarray, self._programs[static](values, arrays))
            except jax.errors.JaxRuntimeError as error:
                if "RESOURCE_EXHAUSTED" not in str(error):
                    raise
                raise MemoryError(str(error)) from error

    def _run(self, static: tuple[Any, ...], weights: list[Any], arrays: tuple[Any, ...]) -> Any:
        scope = keras.StatelessScope()
        dtype = self._model.compute_dtype
        for weight, value in zip(self._model.weights, weights, strict=True):
            is_cast = is_autocast(weight) and weight.dtype != dtype
            scope.add_update((weight, keras.ops.cast(value, dtype) if is_cast else value))
        with scope:
            return self._function(*arrays, *static)
