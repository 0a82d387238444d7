"""`METRICS`: the list of all scores on a split. Another one is a function and a row here.

The significance of differences between systems is by paired bootstrap over sentences (Koehn, 2004).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from t2t_revival.metrics.bleu import CorpusScore, bleu_metric, chrf_score, sacrebleu_score
from t2t_revival.utils.texts import texts_of

TEXT, TREES = "text", "trees"
LOSS = "loss"
SAMPLES, LEVEL = 1000, 0.05  # resamplings; significance
SEED = 12345  # sacreBLEU's default


@dataclass(frozen=True)
class Compared:
    """A corpus score, compared with that of the first system on the same sentences.

    Attributes:
        score: BLEU or F1, 0 to 100.
        interval: half the width of its 95% confidence interval, by bootstrap.
        p: probability of so large a difference from the first system by chance; `None` for the first.
    """

    score: float
    interval: float
    p: float | None

    @property
    def significant(self) -> bool:
        """True if the difference from the first system is significant."""
        return self.p is not None and self.p < LEVEL


def compare_bleu(
    outputs: Mapping[str, Sequence[str]], references: Sequence[str], target_lang: str = ""
) -> dict[str, Compared]:
    """Compares systems by sacreBLEU's paired bootstrap test of each against the first.

    Each system has an output for each reference; `target_lang` is as in `sacrebleu_score`.
    """
    from sacrebleu.significance import PairedTest

    systems = [(name, texts_of(lines, name)) for name, lines in outputs.items()]
    sides = [texts_of(references, "references")]
    test = PairedTest(systems, {"BLEU": bleu_metric(target_lang)}, sides, test_type="bs", n_samples=SAMPLES)
    results = test()[1]["BLEU"]
    base = results[0].score
    return {
        name: Compared(result.score, result.ci, _p(result.p_value, result.score, base) if number else None)
        for number, (name, result) in enumerate(zip(outputs, results, strict=True))
    }


def compare_f1(outputs: Mapping[str, Sequence[str]], references: Sequence[str]) -> dict[str, Compared]:
    """Compares parsers by the same test of bracket F1, with sacreBLEU's number of samples, seed and p.

    Each parser has a tree in Penn bracketing for each reference, a gold tree.

    Raises:
        T2TError: a tree is malformed, or has other words than its reference.
    """
    import numpy as np

    from t2t_revival.metrics.parseval import score as brackets_of
    from t2t_revival.parsing.trees import parse, parse_output

    draws = np.random.default_rng(SEED).choice(len(references), size=(SAMPLES, len(references)))
    base, base_samples, compared = 0.0, np.zeros(SAMPLES), {}
    for number, (name, trees) in enumerate(outputs.items()):
        pairs = zip(references, trees, strict=True)
        all_counts = [brackets_of(parse(gold), parse_output(tree)) for gold, tree in pairs]
        counts = np.array([(one.matched, one.gold + one.predicted) for one in all_counts])  # [sentences, 2]
        sums = np.concatenate([counts.sum(axis=0)[None], counts[draws].sum(axis=1)])
        scores = 200.0 * sums[:, 0] / sums[:, 1].clip(1)  # F1 in percent; 0 where there are no brackets
        score, samples = float(scores[0]), scores[1:]
        if not number:
            base, base_samples = score, samples
        differences = np.abs(samples - base_samples)
        larger = (differences - differences.mean() > abs(score - base)).sum()
        p = _p(float(larger + 1) / (SAMPLES + 1), score, base) if number else None
        low, high = np.percentile(samples, [2.5, 97.5])
        compared[name] = Compared(score, float(high - low) / 2, p)
    return compared


def _p(p: float, score: float, base: float) -> float:
    """The p of the test, or 1 for equal scores, which the test would call significant."""
    return 1.0 if score == base else p


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
