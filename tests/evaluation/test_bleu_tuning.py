"""Tuning of weights: BLEU is sacreBLEU's, steps are exact, and weights that are known are found."""

from __future__ import annotations

import numpy as np
import pytest

from t2t_revival.addons.rerank.bleu_tuning import (
    Table,
    best_step,
    bleu_of,
    bleu_statistics,
    corpus_bleu,
    tune,
)
from t2t_revival.metrics.bleu import sacrebleu_score

WORDS = ["a", "the", "dog", "cat", "sees", "houses", "of", "in", "and", "two", "small", "old"]


def corpus(lines: int, width: int, seed: int = 0) -> tuple[list[list[str]], list[str], np.ndarray]:
    """Candidates with more and more wrong words, references, and the share of right words of each."""
    generator = np.random.default_rng(seed)
    candidates, references, right = [], [], np.zeros((lines, width))
    for line in range(lines):
        words = generator.choice(WORDS, generator.integers(5, 12)).tolist()
        references.append(" ".join(words))
        candidates.append([])
        for place in range(width):
            wrong = generator.random(len(words)) < place / width
            candidates[-1].append(
                " ".join("x" if bad else word for bad, word in zip(wrong, words, strict=True))
            )
            right[line, place] = 1 - wrong.mean()
    return candidates, references, right


def table_of(features: np.ndarray, counts: np.ndarray | None = None) -> Table:
    """A table whose lines have that many candidates, or all."""
    lines, width = features.shape[:2]
    counts = np.full(lines, width) if counts is None else counts
    return Table(features, np.arange(width) < counts[:, None])


@pytest.mark.parametrize("seed", range(4))
def test_bleu_is_sacrebleus(seed: int) -> None:
    candidates, references, _ = corpus(6, 3, seed)
    candidates[0], references[0] = ["", ".", "x y"], ""
    statistics = bleu_statistics(candidates, references)
    chosen = np.random.default_rng(seed).integers(0, 3, 6)
    texts = [texts[place] for texts, place in zip(candidates, chosen, strict=True)]
    found = corpus_bleu(statistics[np.arange(6), chosen].sum(0))
    assert found == pytest.approx(sacrebleu_score(texts, references).score, abs=1e-9)


@pytest.mark.parametrize(
    ("texts", "references"),
    [
        (["x y z"], ["a b c"]),
        (["a b c d"], ["a b x d"]),
        ([""], ["a"]),
        (["a b"], ["a b"]),
        (["a b c x d"], ["a c b x d"]),
    ],
)
def test_bleu_of_few_matches_is_sacrebleus(texts: list[str], references: list[str]) -> None:
    statistics = bleu_statistics([[text] for text in texts], references)[:, 0].sum(0)
    assert corpus_bleu(statistics) == pytest.approx(sacrebleu_score(texts, references).score, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_as_good_as_the_best_of_a_fine_grid(seed: int) -> None:
    candidates, references, _ = corpus(8, 4, seed)
    statistics = bleu_statistics(candidates, references)
    generator = np.random.default_rng(seed)
    table = table_of(generator.normal(size=(8, 4, 3)).round(1), generator.integers(1, 5, 8))
    weights = generator.normal(size=3)

    def score(step: float) -> float:
        return bleu_of(table, statistics, weights + step * np.eye(3)[1])

    best = max(map(score, np.linspace(-30, 30, 6001)))
    assert score(best_step(table, statistics, weights, 1)) >= best - 1e-9


def test_known_weights_are_found() -> None:
    """Two noisy views of what is right, one of them of the other sign, and a feature that tells nothing."""
    candidates, references, right = corpus(60, 6)
    generator = np.random.default_rng(5)
    noise = generator.normal(size=(60, 6)) * 2
    useless = generator.normal(size=(60, 6))
    features = np.stack([right + noise, (right - noise) * -0.01, useless, np.ones((60, 6))], axis=2)
    statistics = bleu_statistics(candidates, references)
    table = table_of(features)
    weights = tune(table, statistics)
    best = corpus_bleu(statistics[np.arange(60), right.argmax(1)].sum(0))
    assert bleu_of(table, statistics, weights) >= best - 1e-6
    assert weights[1] / weights[0] == pytest.approx(-100, rel=0.1)
    assert weights[3] == 0.0, "a feature that is equal for all"
    assert np.abs(weights).sum() == pytest.approx(1)


def test_equal_seeds_give_equal_weights_and_none_is_worse_than_the_first_feature() -> None:
    candidates, references, _ = corpus(20, 4)
    statistics = bleu_statistics(candidates, references)
    table = table_of(np.random.default_rng(1).normal(size=(20, 4, 3)))
    first = bleu_of(table, statistics, np.eye(3)[0])
    for seed in range(3):
        found, again = tune(table, statistics, seed, 2), tune(table, statistics, seed, 2)
        np.testing.assert_array_equal(found, again)
        assert bleu_of(table, statistics, found) >= first


def test_lines_of_one_candidate_leave_the_first_feature() -> None:
    statistics = bleu_statistics([["a b c d"], ["a b c e"]], ["a b c d", "a b c d"])
    found = tune(table_of(np.zeros((2, 1, 3))), statistics)
    np.testing.assert_array_equal(found, [1, 0, 0])


def test_statistics_of_chinese_are_of_its_tokens():
    outputs, references = ["我们喜欢这只狗。", "他在睡觉。"], ["我们喜欢这只猫。", "他在睡觉。"]
    statistics = bleu_statistics([[text] for text in outputs], references, "zh")[:, 0].sum(0)
    expected = sacrebleu_score(outputs, references, target_lang="zh").score
    assert corpus_bleu(statistics) == pytest.approx(expected, abs=1e-9)
    assert expected > 50
