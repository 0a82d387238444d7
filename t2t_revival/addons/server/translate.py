"""`/translate`: texts in, translations out, as plain JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from t2t_revival.addons.server.predict import RequestError
from t2t_revival.addons.server.requests import RequestBody
from t2t_revival.addons.server.rows import Columns
from t2t_revival.decoding.constrained_lines import checked
from t2t_revival.decoding.hypothesis_scores import MAX_ALPHA
from t2t_revival.decoding.json_inputs import JsonLine
from t2t_revival.decoding.lexical_constraints import LineConstraints
from t2t_revival.decoding.options import BOUNDS, TEMPERATURES, DecodeHParams
from t2t_revival.decoding.terminology import Terminology
from t2t_revival.errors import T2TError
from t2t_revival.serving.signatures import (
    DEFAULT,
    NO_OUTPUT,
    WITH_OPTIONS,
    WITH_SAMPLING,
    WITH_TABLES,
)
from t2t_revival.utils.blank import is_blank

if TYPE_CHECKING:
    from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

    from t2t_revival.decoding.paragraphs import Paragraph
    from t2t_revival.problems.problem import Problem

Text = Annotated[str, AfterValidator(lambda text: text.encode("utf-8", "replace").decode())]  # always UTF-8
Phrase = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
SAMPLING = ("sampling_temp", "sampling_keep_top_k", "random_seed")
MAXIMA = {name: maximum for name, _, maximum in BOUNDS}


class Options(RequestBody):
    """Settings of decoding: by default the export's; where one is given, the others are the usual ones."""

    beam_size: Annotated[int, Field(ge=1, le=MAXIMA["beam_size"])] = DecodeHParams.beam_size
    alpha: Annotated[float, Field(ge=-MAX_ALPHA, le=MAX_ALPHA)] = DecodeHParams.alpha
    extra_length: Annotated[int, Field(ge=0, le=MAXIMA["extra_length"])] = DecodeHParams.extra_length
    n: Annotated[int, Field(ge=1, description="Number of outputs; of a search at most beam_size.")] = 1
    tag: Annotated[str, StringConstraints(pattern=r"^\S*$")] = ""
    sampling_method: Literal["argmax", "random"] = "argmax"
    sampling_temp: Annotated[float, Field(ge=TEMPERATURES[0], le=TEMPERATURES[1])] = 1.0
    sampling_keep_top_k: Annotated[int, Field(ge=-1, le=2**31 - 1)] = DecodeHParams.sampling_keep_top_k
    random_seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    split_sentences: Annotated[bool, Field(description="Translate each sentence for itself.")] = False
    constraints: list[Phrase] = Field(default=[], description="Phrases that all outputs must have.")
    avoid: list[Phrase] = Field(default=[], description="Phrases that no output may have.")
    terms: dict[Phrase, Phrase] = Field(
        default={}, description="Translations of terms, for lines that have them."
    )

    @model_validator(mode="after")
    def _check_effects(self) -> Options:
        """Rejects options without effect."""
        if self.sampling_method != "random" and self.n > self.beam_size:
            raise ValueError(f"n={self.n} must be at most beam_size, which is {self.beam_size}")
        if self.sampling_method == "random":
            useless = {"beam_size"} & self.model_fields_set
            reason = "sampling_method=random: give n"
        else:
            useless = {
                name for name in SAMPLING if getattr(self, name) != type(self).model_fields[name].default
            }
            reason = "sampling_method=argmax"
        if useless:
            raise ValueError(f"{min(useless)} has no effect with {reason}")
        if self.has_phrases:
            if self.split_sentences or self.sampling_method == "random":
                raise ValueError("constraints, avoid and terms are for a search, without split_sentences")
            if self.beam_size < 2:
                raise ValueError("constraints, avoid and terms need a beam_size of 2 or more")
        return self

    @property
    def has_phrases(self) -> bool:
        """True if outputs must have or must not have phrases."""
        return bool(self.constraints or self.avoid or self.terms)

    @property
    def signature(self) -> str:
        """The signature that decodes lines without phrases with these settings."""
        return WITH_SAMPLING if self.sampling_method == "random" else WITH_OPTIONS

    @property
    def search(self) -> DecodeHParams:
        """The settings of a search."""
        return DecodeHParams(beam_size=self.beam_size, alpha=self.alpha, extra_length=self.extra_length)

    def columns(self, lines: Sequence[str], definition: SignatureDef) -> dict[str, list[Any]]:
        """Returns the inputs of the signature."""
        given = {name: value for name, value in self.model_dump().items() if name in definition.inputs}
        return {"inputs": [*lines], **{name: [value] * len(lines) for name, value in given.items()}}

    def constraints_of(self, lines: Sequence[str]) -> list[LineConstraints]:
        """Returns the constraints of each line.

        Raises:
            RequestError: phrases contradict each other.
        """
        none = Terminology({})
        given = [JsonLine(line, self.constraints, self.avoid, self.terms) for line in lines]
        try:
            return [checked(one.all_constraints(none), row) for row, one in enumerate(given, start=1)]
        except T2TError as error:
            raise RequestError(str(error)) from error


class TranslateRequest(RequestBody):
    """A text or a list of texts, one sentence each."""

    inner_keys: ClassVar[dict[str, str]] = {name: f"options.{name}" for name in Options.model_fields}

    text: Text | list[Text]
    model: Annotated[str | None, Field(description="Needed where the server has several.")] = None
    options: Options | None = None
    stream: Annotated[bool, Field(description="Whether to answer line by line, as NDJSON.")] = False

    @property
    def lines(self) -> list[str]:
        """The texts."""
        return [self.text] if isinstance(self.text, str) else self.text

    def call(
        self, lines: Sequence[str], definitions: Mapping[str, SignatureDef]
    ) -> tuple[str, dict[str, list[Any]]]:
        """Returns the signature and its inputs for some of the lines.

        Raises:
            RequestError: the model has no such signature, or no tags.
        """
        if self.options is None:
            return DEFAULT, {"inputs": [*lines]}
        signature = self.options.signature
        if signature not in definitions:
            raise RequestError("this model does not sample: leave sampling_method out, or export it again")
        if self.options.has_phrases and WITH_TABLES not in definitions:
            raise RequestError(
                "this model has no constraints: leave constraints, avoid and terms out, or export it again"
            )
        if self.options.split_sentences and self.options.n > 1:
            raise RequestError("n must be 1 with split_sentences")
        if self.options.tag and "tag" not in definitions[signature].inputs:
            raise RequestError("this model has no tags: leave tag out")
        return signature, self.options.columns(lines, definitions[signature])


class Output(BaseModel):
    """An output and its score: log-probability / length penalty."""

    text: str
    score: float


class Translation(Output):
    """The best output of a line, and all where more than one was asked for.

    `truncated` is true of a line that is longer than the model's inputs: its end is missing. `unaligned` has
    terms whose translations are in the best output for other words, as far as the word alignment shows.
    """

    nbest: list[Output] | None = None
    truncated: bool | None = None
    unaligned: dict[str, str] | None = None


class TranslateAnswer(BaseModel):
    """Translations of the lines, in their order."""

    model: str
    version: int
    translations: list[Translation]


def translations(
    lines: Sequence[str], found: Columns, problem: Problem | None = None
) -> Iterator[Translation]:
    """Yields the translation of each line; of a parser, trees over the line's words."""
    rows = zip(lines, found["outputs"], found["scores"], found["truncated"], strict=True)
    for line, texts, scores, truncated in rows:
        outputs = [
            Output(text=_finished(line, text.decode("utf-8", "replace"), problem), score=round(score, 6))
            for text, score in zip(texts, scores, strict=True)
            if score > NO_OUTPUT
        ]
        best = outputs[0] if outputs else Output(text="", score=NO_OUTPUT)
        yield Translation(
            text=best.text,
            score=best.score,
            nbest=outputs if len(texts) > 1 else None,
            truncated=truncated or None,
        )


def joined(paragraph: Paragraph, parts: Sequence[Translation]) -> Translation:
    """Returns the translation of a line whose sentences were translated."""
    text = paragraph.join([part.text for part in parts]) if parts else ""
    truncated = any(part.truncated for part in parts) or None
    return Translation(text=text, score=round(sum(part.score for part in parts), 6), truncated=truncated)


def _finished(line: str, output: str, problem: Problem | None) -> str:
    return problem.postprocess(line, output).text if problem and not is_blank(line) else output
