"""Products with weights and rows of weights, which a decoder may compute from another form of the weights."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from keras import ops

PROJECTIONS = ("query_key_value", "query", "key_value", "output", "kernel_1", "kernel_2")  # names of weights
READ_HERE = (*PROJECTIONS, "kernel", "embeddings")  # of all matrices that the functions below alone read


class Matrix(ABC):
    """Another form of a matrix of weights."""

    @abstractmethod
    def multiply(self, rows: Any) -> Any:
        """Returns [rows, channels] times the matrix, [rows, outputs]."""

    @abstractmethod
    def take(self, ids: Any) -> Any:
        """Returns rows of the matrix: int [...] -> [..., outputs]."""

    @abstractmethod
    def transpose(self) -> Any:
        """Returns the transposed matrix, a tensor or a `Matrix`."""


_NONE: Mapping[int, Matrix] = MappingProxyType({})
_forms: ContextVar[Mapping[int, Matrix]] = ContextVar("forms", default=_NONE)


@contextmanager
def replace_matrices(pairs: Sequence[tuple[Any, Matrix]]) -> Iterator[None]:
    """Has the functions below use, for each variable, the matrix that is paired with it."""
    token = _forms.set({id(variable): matrix for variable, matrix in pairs})
    try:
        yield
    finally:
        _forms.reset(token)


def is_replaced(variable: Any) -> bool:
    """Returns whether another form of a variable stands in its place; see `replace_matrices`."""
    return id(variable) in _forms.get()


def matmul(rows: Any, kernel: Any) -> Any:
    """Multiplies rows, [rows, channels], by a variable, tensor or `Matrix`, [channels, outputs]."""
    kernel = _forms.get().get(id(kernel), kernel)
    if isinstance(kernel, Matrix):
        return kernel.multiply(rows)
    return ops.matmul(rows, ops.cast(kernel, rows.dtype))  # Keras casts weights inside a layer's call only


def take(variable: Any, ids: Any) -> Any:
    """Returns rows of a matrix of weights: int [...] -> [..., columns]."""
    matrix = _forms.get().get(id(variable))
    return matrix.take(ids) if matrix else ops.take(variable, ids, axis=0)


def transpose(variable: Any, dtype: str) -> Any:
    """Returns a matrix of weights transposed, a tensor of type `dtype` or a `Matrix`."""
    matrix = _forms.get().get(id(variable))
    return matrix.transpose() if matrix else ops.transpose(ops.cast(variable, dtype))
