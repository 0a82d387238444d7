"""Functions of a model that JAX compiles."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        self._programs: dict[tuple[Any, ...], Any] = {}
        self._compiled: set[tuple[Any, ...]] = set()
        self._locks = defaultdict[Any, threading.Lock](threading.Lock)  # of shapes: one thread compiles each
        self._one_call = threading.Lock()  # a program has all cores

    def __call__(self, *arguments: Any) -> Any:
        """Returns the function's results as NumPy arrays.

        Raises:
            MemoryError: the device has too little memory.
        """
        self.compile(*arguments)
        arrays, static = self._split(arguments)
        with self._one_call, _memory_errors():
            return tree.map_structure(np.asarray, self._programs[static](self._weights, arrays))

    def compile(self, *arguments: Any) -> None:
        """Compiles the function for arguments of these shapes, unless it is.

        Threads may compile other shapes meanwhile, and one may compute.

        Raises:
            MemoryError: the device has too little memory.
        """
        import jax

        arrays, static = self._split(arguments)
        shapes = static, jax.tree.structure(arrays), *map(np.shape, jax.tree.leaves(arrays))
        if static not in self._programs:
            self._programs.setdefault(static, jax.jit(partial(self._run, static)))
        with self._locks[shapes], _memory_errors():
            if shapes not in self._compiled:
                self._programs[static].lower(self._weights, arrays).compile()
                self._compiled.add(shapes)

    def _split(self, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return arguments[: self._num_arrays], arguments[self._num_arrays :]

    @property
    def _weights(self) -> list[Any]:
        return [weight.value for weight in self._model.weights]

    def _run(self, static: tuple[Any, ...], weights: list[Any], arrays: tuple[Any, ...]) -> Any:
        scope = keras.StatelessScope()
        dtype = self._model.compute_dtype
        for weight, value in zip(self._model.weights, weights, strict=True):
            is_cast = is_autocast(weight) and weight.dtype != dtype
            scope.add_update((weight, keras.ops.cast(value, dtype) if is_cast else value))
        with scope:
            return self._function(*arrays, *static)


@contextmanager
def _memory_errors() -> Iterator[None]:
    """Raises JAX's error of a lack of memory as Python's."""
    import jax

    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise MemoryError(str(error)) from error
