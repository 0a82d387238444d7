"""Bodies of requests, whose keys are checked, and their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from t2t_revival.addons.server.batching import TEXTS
from t2t_revival.addons.server.predict import RequestError
from t2t_revival.errors import did_you_mean, similar


class RequestBody(BaseModel):
    """An object of a request, which has no other keys than those of its class.

    Attributes:
        inner_keys: places of keys of its objects, by name, for those who have given one outside.
    """

    model_config = ConfigDict(extra="forbid")

    inner_keys: ClassVar[dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, request: Any) -> Any:
        for name in request if isinstance(request, dict) else ():
            if name not in cls.model_fields:
                raise PydanticCustomError("unknown_key", "{fault}", {"fault": cls._unknown(name)})
        return request

    @classmethod
    def _unknown(cls, name: str) -> str:
        places = {**{own: own for own in cls.model_fields}, **cls.inner_keys}
        if near := [name] if name in places else similar(name, places):
            return f"unknown key {name!r}; did you mean {' or '.join(places[one] for one in near)}?"
        return did_you_mean(name, cls.model_fields, "key")


@dataclass(frozen=True)
class Limits:
    """Bounds of requests.

    Attributes:
        max_lines: lines of a request; a streamed one may have `max_streamed_lines`.
        max_streamed_lines: lines of a streamed request.
        max_characters: characters of a line.
        max_beam_size: hypotheses, or samples, that a request may ask for.
        max_extra_length: see `DecodeHParams`.
        timeout: seconds that a request waits for its model, and seconds that its answer may take.
    """

    max_lines: int = 1024
    max_streamed_lines: int = 100_000
    max_characters: int = 20_000
    max_beam_size: int = 16
    max_extra_length: int = 200
    timeout: float = 60

    def check(self, columns: Mapping[str, Sequence[Any]], streamed: bool = False) -> None:
        """Raises RequestError where a call is out of bounds."""
        lines, most = columns["inputs"], self.max_streamed_lines if streamed else self.max_lines
        if len(lines) > most:
            raise RequestError(f"{len(lines):,} lines: the server takes {most:,} in a request", 413)
        texts_of_lines = zip(*(columns[name] for name in TEXTS if name in columns), strict=True)
        for number, texts in enumerate(texts_of_lines, 1):
            if max(map(len, texts)) > self.max_characters:
                fault = f"line {number} has more than {self.max_characters:,} characters: split it"
                raise RequestError(fault, 413)
        beam_size, extra_length = self.max_beam_size, self.max_extra_length
        widths = (("beam_size", beam_size), ("n", beam_size), ("candidates", beam_size))
        for name, maximum in (*widths, ("extra_length", extra_length)):
            if max(columns.get(name, ()), default=0) > maximum:
                raise RequestError(f"{name} must be at most {maximum} on this server")
