"""`Inspector`: explains outputs of a model that is served from its training's folder, and describes it."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from t2t_revival.addons.attention.attention import compute_attention
from t2t_revival.addons.attention.page import page
from t2t_revival.addons.server.explanation import Explanation, explain
from t2t_revival.addons.server.requests import RequestBody
from t2t_revival.addons.server.translate import Options, Text
from t2t_revival.curve_files import DEV, read_curve
from t2t_revival.data.mixture import tagged
from t2t_revival.data.word_alignment import Span
from t2t_revival.decoding.preprocessor import check_tag, known_tags
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.checkpoint_evaluation import dev_score, drawn_score
from t2t_revival.metrics.metric import title_of
from t2t_revival.model_folder import ModelFolder

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

MAX_POINTS = 300  # of a curve


class ExplainRequest(RequestBody):
    """A line, and an output of it or its beginning; without either, the best output is decoded."""

    text: Text
    model: Annotated[str | None, Field(description="Needed where the server has several.")] = None
    output: Annotated[Text | None, Field(description="As /translate returned it.")] = None
    prefix: Annotated[Text, Field(description="Beginning of the output that is decoded.")] = ""
    word: Annotated[int | None, Field(description="Number of a word whose alternatives are wanted.")] = None
    tag: str = ""


class Place(BaseModel):
    """A word by its first character and the one after its last."""

    start: int
    end: int


class OtherWord(BaseModel):
    """A word that could have stood there; `prefix` is the output before it, and it."""

    text: str
    prefix: str
    probability: float


class OutputWord(Place):
    """A word of an output, with the attention to each word of the text; alternatives are those asked for."""

    probability: float
    alternatives: list[OtherWord]
    attention: list[float]


class ExplainAnswer(BaseModel):
    """Words of a text and of an output; places count characters (Unicode code points)."""

    text: str
    words: list[Place]
    output: str
    output_words: list[OutputWord]

    @classmethod
    def of(cls, found: Explanation) -> ExplainAnswer:
        """Formats an explanation; probabilities and weights have 4 digits."""
        words = [
            OutputWord(
                **_place(word.span),
                probability=round(math.exp(word.log_prob), 4),
                alternatives=[
                    OtherWord(text=text, prefix=prefix, probability=round(probability, 4))
                    for text, prefix, probability in word.alternatives
                ],
                attention=[round(weight, 4) for weight in word.attention],
            )
            for word in found.words
        ]
        source_words = [Place(**_place(span)) for span in found.source_words]
        return cls(text=found.source, words=source_words, output=found.output, output_words=words)


class Score(BaseModel):
    """The score on dev of the checkpoint that is served."""

    name: str
    value: float


class Training(BaseModel):
    """A model's training; curves are of dev, as pairs of target tokens and a value.

    `metric` is the name of the curve "score"; the checkpoint's own `score` may be another one.
    """

    problem: str
    hparams_set: str
    step: int
    parameters: int
    score: Score | None
    metric: str
    curves: dict[str, list[tuple[float, float]]]


class Inspector:
    """Explains outputs of a model, draws its attention and describes its training.

    Args:
        translator: the model, which stays in memory beside its export.
        folder: of the training.

    Attributes:
        translator: the model.
    """

    def __init__(self, translator: Translator, folder: ModelFolder) -> None:
        self.translator, self._folder = translator, folder

    @property
    def tags(self) -> list[str]:
        """The tags that a text may have."""
        return known_tags(self.translator.vocabularies, self.translator.problem)

    @property
    def options(self) -> Options:
        """Settings of the search that the export has."""
        own = self.translator.options
        search = Options(beam_size=own.beam_size, alpha=own.alpha, extra_length=own.extra_length)
        return search.model_copy(update={"n": own.outputs, "tag": own.tag})

    @property
    def explains(self) -> bool:
        """True if the model has the attention that explanations show."""
        return self.translator.model.hparams.decoder_self_attention == "attention"

    def explain(self, asked: ExplainRequest) -> ExplainAnswer:
        """Explains an output; see `explain` for errors."""
        line = self._tagged(asked)
        return ExplainAnswer.of(explain(self.translator, line, asked.output, asked.prefix, asked.word))

    def attention_page(self, asked: ExplainRequest) -> str:
        """Returns the page of t2t-attention for an output in the model's form."""
        problem, output = self.translator.problem, asked.output
        target = problem.encode_target(output) if problem and output is not None else output
        title = f"{self._folder.run.problem}, {self._folder.run.hparams_set}, step {self.training.step:,}"
        return page(compute_attention(self.translator, self._tagged(asked), target), title)

    @cached_property
    def training(self) -> Training:
        """The training, as its folder describes it when first asked."""
        assert self.translator.checkpoint
        rows = read_curve(self._folder.path, DEV)
        try:
            metric = drawn_score(self._folder.path, rows)
        except T2TError:  # best.json is corrupt
            metric = ""
        return Training(
            problem=self._folder.run.problem,
            hparams_set=self._folder.run.hparams_set,
            step=self.translator.checkpoint.step,
            parameters=self.translator.model.count_params(),
            score=self._score(),
            metric=title_of(metric),
            curves={"loss": _curve(rows, "loss"), "score": _curve(rows, metric)},
        )

    def _score(self) -> Score | None:
        """Returns the score of the checkpoint; `None` without one, or where its files are gone or corrupt."""
        assert self.translator.checkpoint
        try:
            found = dev_score(self._folder.path, self.translator.checkpoint.path)
        except (T2TError, OSError):
            return None
        return Score(name=title_of(found[0]), value=found[1]) if found else None

    def _tagged(self, asked: ExplainRequest) -> str:
        check_tag(asked.tag, self.translator.vocabularies, self.translator.problem)
        return tagged([asked.text], asked.tag)[0]


def _place(span: Span) -> dict[str, int]:
    return {"start": span.start, "end": span.end}


def _curve(rows: list[dict[str, float]], column: str) -> list[tuple[float, float]]:
    points = [(row["target_tokens"], row[column]) for row in rows if math.isfinite(row.get(column, math.nan))]
    return points[:: max(1, math.ceil(len(points) / MAX_POINTS))]
