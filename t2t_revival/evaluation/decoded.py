"""The metric of a problem's decoded outputs: BLEU of translations, F1 of trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from t2t_revival.evaluation.bleu import paper_style_languages, sacrebleu_score
from t2t_revival.evaluation.significance import Compared, compare_bleu, compare_f1
from t2t_revival.hints import command_line

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem


@dataclass(frozen=True)
class MetricResult:
    """A corpus score of 0 to 100, and how it was computed."""

    score: float
    details: str


@dataclass(frozen=True)
class Metric:
    """A metric of decoded outputs.

    Attributes:
        name: in `Problem.eval_metrics`.
        title: name in text for people.
        score: called with outputs and references; returns the score of the corpus.
        compare: called with outputs of several systems and references; returns the score of each system and
            the significance of its difference from the first.
        program: command that scores files.
        flags: its flags for outputs and for references.
        target_lang: language of the outputs; empty if they have none.
    """

    name: str
    title: str
    score: Callable[[Sequence[str], Sequence[str]], MetricResult]
    compare: Callable[[Mapping[str, Sequence[str]], Sequence[str]], dict[str, Compared]]
    program: str
    flags: tuple[str, str]
    target_lang: str = ""

    def command(self, outputs: str, references: str) -> str:
        """The command that scores a file of outputs against one of references."""
        files = dict(zip(self.flags, (outputs, references), strict=True))
        language = self.target_lang if self.target_lang in paper_style_languages() else None
        return command_line(self.program, **files, target_lang=language)


def metric_for(problem: Problem) -> Metric | None:
    """The metric of a problem's outputs; `None` if they have none."""
    metric = next((metric for metric in METRICS if metric.name in problem.eval_metrics()), None)
    if metric and metric.name == "bleu":
        return replace(metric, target_lang=getattr(problem, "target_lang", ""))
    return metric


def _bleu(outputs: Sequence[str], references: Sequence[str]) -> MetricResult:
    bleu = sacrebleu_score(list(outputs), list(references))
    return MetricResult(bleu.score, "; ".join(filter(None, [bleu.signature, bleu.note])))


def _f1(outputs: Sequence[str], references: Sequence[str]) -> MetricResult:
    from t2t_revival.evaluation.parseval import score_corpus
    from t2t_revival.parsing.trees import parse

    counts = score_corpus(map(parse, references), map(parse, outputs)).overall
    return MetricResult(
        counts.f1,
        f"precision {counts.precision:.2f}, recall {counts.recall:.2f}, "
        f"exact match {counts.exact_match:.2f}, by EVALB's rules and COLLINS.prm",
    )


METRICS = (
    Metric("bleu", "BLEU", _bleu, compare_bleu, "t2t-bleu", ("translation", "reference")),
    Metric("f1", "F1", _f1, compare_f1, "t2t-parseval", ("predicted", "gold")),
)
