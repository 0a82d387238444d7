"""Significance of differences between systems, by paired bootstrap over sentences (Koehn, 2004)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_revival.utils.bleu_tokenizers import bleu_metric
from t2t_revival.utils.texts import texts_of

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
    metric = bleu_metric(target_lang, sides[0])
    test = PairedTest(systems, {"BLEU": metric}, sides, test_type="bs", n_samples=SAMPLES)
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

    draws = np.random.default_rng(SEED).choice(len(references), size=(SAMPLES, len(references)))
    base, base_samples, compared = 0.0, np.zeros(SAMPLES), {}
    for number, (name, trees) in enumerate(outputs.items()):
        counts = np.array(_bracket_counts(trees, references))  # [sentences, 2]
        score, samples = float(_f1(counts.sum(axis=0))), _f1(counts[draws].sum(axis=1))
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


def _bracket_counts(trees: Sequence[str], references: Sequence[str]) -> list[tuple[int, int]]:
    """Matched brackets of each tree, and the sum of its gold and predicted brackets."""
    from t2t_revival.metrics.parseval import score
    from t2t_revival.parsing.trees import parse, parse_output

    all_counts = [
        score(parse(gold), parse_output(tree)) for gold, tree in zip(references, trees, strict=True)
    ]
    return [(counts.matched, counts.gold + counts.predicted) for counts in all_counts]


def _f1(counts: Any) -> Any:
    """F1 in percent of counts [..., 2]; 0 where there are no brackets."""
    matched, brackets = counts[..., 0], counts[..., 1]
    return 200.0 * matched / brackets.clip(1)
