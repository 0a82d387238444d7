"""What decoded outputs are worth by a problem's own measure: BLEU of translations, F1 of trees."""

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
class Measured:
    """A corpus score of 0 to 100, and how it came about."""

    score: float
    details: str


@dataclass(frozen=True)
class Measure:
    """A way to measure outputs.

    Attributes:
        metric: its name in `Problem.eval_metrics`.
        title: as people write it.
        score: outputs and references -> the corpus' score.
        compare: outputs of several systems and references -> each one's score, tested against the first's.
        program: the command that measures files.
        flags: its flags for outputs and for references.
        target_lang: the language of the outputs, if they have one.
    """

    metric: str
    title: str
    score: Callable[[Sequence[str], Sequence[str]], Measured]
    compare: Callable[[Mapping[str, Sequence[str]], Sequence[str]], dict[str, Compared]]
    program: str
    flags: tuple[str, str]
    target_lang: str = ""

    def command(self, outputs: str, references: str) -> str:
        """The command that measures a file of outputs against one of references."""
        files = dict(zip(self.flags, (outputs, references), strict=True))
        language = self.target_lang if self.target_lang in paper_style_languages() else None
        return command_line(self.program, **files, target_lang=language)


def measure_of(problem: Problem) -> Measure | None:
    """How a problem's outputs are measured; None: they are not."""
    measure = next((measure for measure in MEASURES if measure.metric in problem.eval_metrics()), None)
    if measure and measure.metric == "bleu":
        return replace(measure, target_lang=getattr(problem, "target_lang", ""))
    return measure


def _bleu(outputs: Sequence[str], references: Sequence[str]) -> Measured:
    bleu = sacrebleu_score(list(outputs), list(references))
    return Measured(bleu.score, "; ".join(filter(None, [bleu.signature, bleu.note])))


def _f1(outputs: Sequence[str], references: Sequence[str]) -> Measured:
    from t2t_revival.evaluation.parseval import score_corpus
    from t2t_revival.parsing.trees import parse

    all_counts = score_corpus(map(parse, references), map(parse, outputs)).overall
    return Measured(
        all_counts.f1,
        f"precision {all_counts.precision:.2f}, recall {all_counts.recall:.2f}, "
        f"exact match {all_counts.exact_match:.2f}, by EVALB's rules and COLLINS.prm",
    )


MEASURES = (
    Measure("bleu", "BLEU", _bleu, compare_bleu, "t2t-bleu", ("translation", "reference")),
    Measure("f1", "F1", _f1, compare_f1, "t2t-parseval", ("predicted", "gold")),
)
