"""`/translate`: texts in, translations out, as plain JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from t2t_revival.decoding.options import BOUNDS, MAX_ALPHA, DecodeHParams
from t2t_revival.server.batching import Columns
from t2t_revival.serving.client import DEFAULT, NO_OUTPUT, WITH_OPTIONS

if TYPE_CHECKING:
    from t2t_revival.problems.text_problems import Text2TextProblem

MAXIMA = {name: maximum for name, _, maximum in BOUNDS}


class Options(BaseModel):
    """Settings of the search: by default the export's; where one is given, the others are the usual ones."""

    model_config = ConfigDict(extra="forbid")

    beam_size: Annotated[int, Field(ge=1, le=MAXIMA["beam_size"])] = DecodeHParams.beam_size
    alpha: Annotated[float, Field(ge=-MAX_ALPHA, le=MAX_ALPHA)] = DecodeHParams.alpha
    extra_length: Annotated[int, Field(ge=0, le=MAXIMA["extra_length"])] = DecodeHParams.extra_length
    n: Annotated[int, Field(ge=1, description="Number of outputs, at most beam_size.")] = 1
    tag: Annotated[str, StringConstraints(pattern=r"^\S*$")] = ""

    def columns(self, lines: Sequence[str], has_tags: bool) -> dict[str, list[Any]]:
        """Returns the inputs of `translate_with_options`."""
        given = self.model_dump(exclude=set() if has_tags else {"tag"})
        return {"inputs": [*lines], **{name: [value] * len(lines) for name, value in given.items()}}


class TranslateRequest(BaseModel):
    """A text or a list of texts, one sentence each."""

    model_config = ConfigDict(extra="forbid")

    text: str | list[str]
    model: Annotated[str | None, Field(description="Needed where the server has several.")] = None
    options: Options | None = None
    stream: Annotated[bool, Field(description="Whether to answer line by line, as NDJSON.")] = False

    @property
    def lines(self) -> list[str]:
        """The texts, in UTF-8: what has none becomes a question mark."""
        texts = [self.text] if isinstance(self.text, str) else self.text
        return [text.encode("utf-8", "replace").decode() for text in texts]

    def call(self, lines: Sequence[str], has_tags: bool) -> tuple[str, dict[str, list[Any]]]:
        """Returns the signature and its inputs for some of the lines."""
        if self.options is None:
            return DEFAULT, {"inputs": [*lines]}
        return WITH_OPTIONS, self.options.columns(lines, has_tags)


class Output(BaseModel):
    """An output and its score: log-probability / length penalty."""

    text: str
    score: float


class Translation(Output):
    """The best output of a line, and all where more than one was asked for."""

    nbest: list[Output] | None = None


class TranslateAnswer(BaseModel):
    """Translations of the lines, in their order."""

    model: str
    version: int
    translations: list[Translation]


def translations(
    lines: Sequence[str], found: Columns, problem: Text2TextProblem | None = None
) -> Iterator[Translation]:
    """Yields the translation of each line; of a parser, trees over the line's words."""
    for line, texts, scores in zip(lines, found["outputs"], found["scores"], strict=True):
        outputs = [
            Output(text=_finished(line, text.decode("utf-8", "replace"), problem), score=round(score, 6))
            for text, score in zip(texts, scores, strict=True)
            if score > NO_OUTPUT
        ]
        best = outputs[0] if outputs else Output(text="", score=NO_OUTPUT)
        yield Translation(text=best.text, score=best.score, nbest=outputs if len(texts) > 1 else None)


def _finished(line: str, output: str, problem: Text2TextProblem | None) -> str:
    return problem.postprocess(line, output).text if problem and line.strip() else output
