"""A translator without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from t2t_revival import DecodeHParams, Translation, registry
from t2t_revival.checkpoints import directory
from t2t_revival.data.vocabulary.text_encoder import EOS
from t2t_revival.decoding.lines.pipeline import Lines

BATCH = 2  # lines


class FakeTranslator:
    """Translates a line to the same in capitals, and then to worse outputs; counts its batches.

    Args:
        data_dir: has the vocabulary.
        checkpoint: for the origin of outputs.
        stop_after: batches after which it is interrupted; `None` never is.
        translate: returns the best output of a line.
    """

    def __init__(
        self,
        data_dir: Path,
        checkpoint: directory.Checkpoint,
        stop_after: int | None = None,
        translate: Callable[[str], str] = str.upper,
    ) -> None:
        self.problem = registry.problem("translate_ende")
        self.vocabulary = self.problem.open(data_dir).vocabularies.inputs
        self.options, self.num_columns, self.max_length = DecodeHParams(beam_size=3), 1, 40
        self.checkpoint, self.model = checkpoint, SimpleNamespace(count_params=lambda: 1_000_000)
        self._stop_after, self._translate = stop_after, translate
        self.decoded: list[str] = []

    def encode(self, line: str) -> list[int]:
        return [*self.vocabulary.encode(line), EOS]

    def other_form(self, lines: list[str]) -> str:
        return ""

    def origin(self, has_terms: bool) -> dict[str, Any]:
        return {"checkpoint": self.checkpoint.name}

    def nbest(self, lines: list[str], n: int | None = None, **_: Any) -> list[list[Translation]]:
        return list(self.iterate(Lines(lines, n)))

    def iterate(self, asked: Lines, *_: Any, skip: int = 0) -> Iterator[list[Translation]]:
        lines, n = asked.texts, asked.n
        batches = [range(start, min(start + BATCH, len(lines))) for start in range(0, len(lines), BATCH)]
        for batch in batches:
            if batch.stop <= skip:
                continue
            if self._stop_after == len(self.decoded) // BATCH:
                raise KeyboardInterrupt
            self.decoded += [lines[index] for index in batch]
            yield from (self._outputs(lines[index])[: n or 1] for index in batch if index >= skip)

    def _outputs(self, line: str) -> list[Translation]:
        texts = self._translate(line), line, f"der Hund sieht {line.split()[-2]} Häuser"
        return [Translation(text, -float(rank)) for rank, text in enumerate(texts, start=1)]
