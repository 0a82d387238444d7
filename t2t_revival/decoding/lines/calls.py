"""Calls of exported models by coroutines: whoever runs a coroutine answers them, at once or in a queue."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
Response = Mapping[str, Any]
Predict = Callable[[str, Mapping[str, Sequence[Any]]], Response]


@dataclass(frozen=True)
class Call:
    """A call of a signature, which a coroutine awaits; see `Model.predict`."""

    signature: str
    inputs: Mapping[str, Sequence[Any]]

    def __await__(self) -> Generator[Call, Response, Response]:
        return (yield self)


Work = Coroutine[Call, Any, Result]


@dataclass(frozen=True)
class Finished(Generic[Result]):
    """The result of a coroutine that has ended."""

    result: Result


def resume(work: Work[Result], response: Response | None = None) -> Call | Finished[Result]:
    """Runs a coroutine up to its next call, given the response of the one before, or up to its end."""
    try:
        return work.send(response)
    except StopIteration as end:
        return Finished(end.value)


def run(work: Work[Result], predict: Predict | None = None) -> Result:
    """Runs a coroutine, whose calls `predict` answers, if it makes any; returns what it returns."""
    step = resume(work)
    while isinstance(step, Call):
        assert predict
        step = resume(work, predict(step.signature, step.inputs))
    return step.result
