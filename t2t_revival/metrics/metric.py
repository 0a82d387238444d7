"""`METRICS`: the list of all scores on a split. Another one is a function and a row here."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from t2t_revival.metrics.bleu import CorpusScore, chrf_score, sacrebleu_score
from t2t_revival.metrics.significance import Compared, compare_bleu, compare_f1

TEXT, TREES = "text", "trees"
LOSS = "loss"


@dataclass(frozen=True)
class Metric:
    """A score of a model on a split.

    Attributes:
        name: in curves, tables and flags; a corpus of a mixture has NAME/CORPUS.
        title: name in text for people.
        outputs: what is decoded for it, "text" or "trees"; empty if nothing is, for all problems.
        lower_is_better: whether the best value is the lowest.
        of_each_corpus: whether each corpus of a mixture is measured.
        score: called with outputs, references and the code of their language, which may be empty.
        compare: called with outputs of several systems, references and their language; returns the score of
            each system and the significance of its difference from the first.
        program: command that scores files; empty where there is none.
        flags: its flags for outputs and for references.
    """

    name: str
    title: str
    outputs: str = ""
    lower_is_better: bool = False
    of_each_corpus: bool = True
    score: Callable[[list[str], list[str], str], CorpusScore] | None = None
    compare: Callable[[Mapping[str, Sequence[str]], Sequence[str], str], dict[str, Compared]] | None = None
    program: str = ""
    flags: tuple[str, ...] = ()

    def rank(self, value: float) -> float:
        """Returns a number that is lower for a better value; NaN is the worst."""
        if math.isnan(value):
            return math.inf
        return value if self.lower_is_better else -value


def _f1(outputs: list[str], references: list[str], _: str) -> CorpusScore:
    from t2t_revival.metrics.parseval import score_corpus
    from t2t_revival.parsing.trees import parse, parse_output

    counts = score_corpus(map(parse, references), map(parse_output, outputs)).overall
    return CorpusScore(
        counts.f1,
        f"precision {counts.precision:.2f}, recall {counts.recall:.2f}, "
        f"exact match {counts.exact_match:.2f}, by EVALB's rules and COLLINS.prm",
        note=f"without a tree, not counted: {counts.errors}" if counts.errors else "",
    )


METRICS = (  # the first of a problem's decoded ones is its main one
    Metric(LOSS, "loss", lower_is_better=True),
    Metric("perplexity", "perplexity", lower_is_better=True, of_each_corpus=False),
    Metric("accuracy", "accuracy", of_each_corpus=False),
    Metric(
        "bleu",
        "BLEU",
        TEXT,
        score=lambda outputs, references, language: sacrebleu_score(
            outputs, references, target_lang=language
        ),
        compare=compare_bleu,
        program="t2t-bleu",
        flags=("translation", "reference"),
    ),
    Metric("chrf", "chrF2", TEXT, score=lambda outputs, references, _: chrf_score(outputs, references)),
    Metric(
        "f1",
        "F1",
        TREES,
        score=_f1,
        compare=lambda outputs, references, _: compare_f1(outputs, references),
        program="t2t-parseval",
        flags=("predicted", "gold"),
    ),
)


def metric_of(score: str) -> Metric:
    """Returns the metric of a score, which may be that of one corpus: "bleu" of "bleu/news"."""
    name = score.partition("/")[0]
    return next((metric for metric in METRICS if metric.name == name), Metric(name, name))


def title_of(score: str) -> str:
    """Returns a score's name in text for people: "BLEU/news" of "bleu/news"."""
    metric = metric_of(score)
    return f"{metric.title}{score.removeprefix(metric.name)}"


def main_score(measured: Collection[str]) -> str:
    """Returns the score that matters most of those that were measured: the main decoded one, or the loss."""
    return next((metric.name for metric in METRICS if metric.outputs and metric.name in measured), LOSS)
