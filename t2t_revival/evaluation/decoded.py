"""Decoded outputs of a problem, and their scores: BLEU of translations, F1 of trees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.errors import CommandLine
from t2t_revival.metrics.bleu import DEFAULT, MOSES_LANGUAGES, CorpusScore, primary_code, tokenizer_name
from t2t_revival.metrics.metric import METRICS, Metric, title_of

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Data, Problem

Results = dict[str, CorpusScore]  # by the names of metrics, the main one first


def main_metric(problem: Problem) -> Metric | None:
    """The metric of decoded outputs that decides; `None` where a problem has none."""
    return next(iter(_output_metrics(problem)), None)


def language_of(data: Data) -> str:
    """The code of the language of the targets; empty where they are of several."""
    if not data.problem.lines_have_tags:
        return data.problem.target_lang
    language = data.metadata.target_lang
    return "" if "," in language else language


def score_outputs(problem: Problem, outputs: list[str], references: list[str], target_lang: str) -> Results:
    """Scores decoded outputs, whose language has the code `target_lang`, by each metric of a problem."""
    return {
        metric.name: metric.score(outputs, references, target_lang)
        for metric in _output_metrics(problem)
        if metric.score
    }


def report(results: Results, where: str) -> str:
    """The main score in a line, and in another how it was computed, the other scores, and remarks."""
    (name, main), *others = results.items()
    scores = (f"{title_of(other)} {result.score:.2f}" for other, result in others)
    details = "; ".join(filter(None, [main.signature, *scores, main.note]))
    return f"{title_of(name)} {main.score:.2f} on {where}\n{details}"


def scoring_command(problem: Problem, outputs: Path, target_lang: str, references: str = "REFERENCE") -> str:
    """The command that scores a file of outputs against one of references; empty where there is none."""
    main = main_metric(problem)
    if not (main and main.program):
        return ""
    files = dict(zip(main.flags, (outputs, references), strict=True))
    return str(CommandLine(main.program, **files, target_lang=known_language(target_lang)))


def known_language(language: str) -> str | None:
    """The value of t2t-bleu's `--target_lang`; `None` where it would change nothing."""
    known = primary_code(language) in MOSES_LANGUAGES or tokenizer_name(language) != DEFAULT
    return language if known else None


def tokenizer_setting(data: Data) -> dict[str, str]:
    """Names BLEU's tokenizers of all corpora, for fingerprints of scores; empty for 13a alone."""
    if not data.problem.targets_are_text:
        return {}
    corpora = data.parts.values() or [data]
    names = ",".join(sorted({tokenizer_name(language_of(corpus)) for corpus in corpora}))
    return {"tokenizer": names} if names != DEFAULT else {}


def _output_metrics(problem: Problem) -> list[Metric]:
    names = problem.eval_metrics()
    return [metric for metric in METRICS if metric.outputs and metric.name in names]


class SplitFiles(NamedTuple):
    """The files of a decoded split.

    Attributes:
        outputs: translations or trees, one a line.
        inputs: the split's inputs.
        references: the split's targets.
    """

    outputs: Path
    inputs: Path
    references: Path

    @classmethod
    def beside(cls, outputs: Path) -> SplitFiles:
        """Names inputs and references after the file of outputs."""
        stem = outputs.name.removesuffix(".outputs")
        return cls(outputs, outputs.with_name(f"{stem}.inputs"), outputs.with_name(f"{stem}.targets"))
