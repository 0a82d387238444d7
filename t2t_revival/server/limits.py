"""`Limits`: bounds of the requests that a server takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_revival.server.batching import TEXTS
from t2t_revival.server.predict import RequestError


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
        for name, maximum in (("beam_size", beam_size), ("n", beam_size), ("extra_length", extra_length)):
            if max(columns.get(name, ()), default=0) > maximum:
                raise RequestError(f"{name} must be at most {maximum} on this server")
