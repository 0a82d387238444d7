"""`Inspector`: explains outputs of a model that is served from its training's folder, and describes it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from t2t_revival.addons.attention.attention import compute_attention
from t2t_revival.addons.attention.page import page
from t2t_revival.addons.server.explanation import OtherWord, explain, other_words
from t2t_revival.addons.server.requests import RequestBody
from t2t_revival.addons.server.translate import Options, Text
from t2t_revival.curve_files import DEV, read_curve
from t2t_revival.data.vocabulary.text_encoder import tagged
from t2t_revival.decoding.lines.preprocessor import check_tag, known_tags
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.checkpoint_evaluation import dev_score, drawn_score
from t2t_revival.hparams.size import count_weights
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
        load: loads the model that explains, once it is asked for. `None` if `translator` does.

    Attributes:
        translator: the model.
        explains_unasked: whether no model is loaded for the first explanation.
    """

    def __init__(
        self, translator: Translator, folder: ModelFolder, load: Callable[[], Translator] | None = None
    ) -> None:
        self.translator, self._folder, self._load = translator, folder, load
        self.explains_unasked = load is None

    @cached_property
    def _explaining(self) -> Translator:
        return self._load() if self._load else self.translator

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
        return self.translator.hparams.decoder_self_attention == "attention"

    def explain(self, asked: ExplainRequest) -> ExplainAnswer:
        """Explains an output; see `explain` and `other_words` for errors."""
        hypothesis, details = explain(self._explaining, self._tagged(asked), asked.output, asked.prefix)
        others = []
        if asked.word is not None:
            others = [
                replace(other, probability=_rounded(other.probability))
                for other in other_words(self._explaining, hypothesis, details, asked.word)
            ]
        output_words = [
            OutputWord(
                start=word.start,
                end=word.end,
                probability=_rounded(math.exp(word.log_prob)),
                alternatives=others if number == asked.word else [],
                attention=[*map(_rounded, weights)],
            )
            for number, (word, weights) in enumerate(zip(details.words, details.attention, strict=True))
        ]
        words = [Place(start=start, end=end) for start, end in details.source_words]
        return ExplainAnswer(
            text=hypothesis.source, words=words, output=hypothesis.text, output_words=output_words
        )

    def attention_page(self, asked: ExplainRequest) -> str:
        """Returns the page of t2t-attention for an output in the model's form."""
        problem, output = self.translator.problem, asked.output
        target = problem.encode_target(output) if problem and output is not None else output
        title = f"{self._folder.run.problem}, {self._folder.run.hparams_set}, step {self.training.step:,}"
        return page(compute_attention(self._explaining, self._tagged(asked), target), title)

    @cached_property
    def training(self) -> Training:
        """The training, as its folder describes it when first asked."""
        assert self.translator.checkpoint
        rows, vocabularies = read_curve(self._folder.path, DEV), self.translator.vocabularies
        try:
            metric = drawn_score(self._folder.path, rows)
        except T2TError:  # best.json is corrupt
            metric = ""
        return Training(
            problem=self._folder.run.problem,
            hparams_set=self._folder.run.hparams_set,
            step=self.translator.checkpoint.step,
            parameters=count_weights(
                self.translator.hparams, vocabularies.inputs.size, vocabularies.target_size
            ),
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


def _rounded(share: float) -> float:
    return round(share, 4)


def _curve(rows: list[dict[str, float]], column: str) -> list[tuple[float, float]]:
    points = [(row["target_tokens"], row[column]) for row in rows if math.isfinite(row.get(column, math.nan))]
    return points[:: max(1, math.ceil(len(points) / MAX_POINTS))]
