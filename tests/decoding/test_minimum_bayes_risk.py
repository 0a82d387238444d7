"""Choice among outputs: by utilities, which are sacreBLEU's, and by nearness to a reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU as SacreBleu
from sacrebleu.metrics import CHRF as SacreChrf

from t2t_revival import Translation
from t2t_revival.addons.choose import expected_utilities
from t2t_revival.decoding.files.resumable import nearest
from t2t_revival.decoding.options import BLEU, CHRF

METRICS = {CHRF: SacreChrf(), BLEU: SacreBleu(effective_order=True)}
WORDS = st.lists(
    st.sampled_from(["a", "the", "dog", "dogs", "sees,", "3.5", "Häuser", "猫", "."]), max_size=8
)
TEXTS = st.lists(WORDS.map(" ".join), min_size=1, max_size=6)


METRIC_OF_CHINESE = {CHRF: SacreChrf(), BLEU: SacreBleu(effective_order=True, tokenize="zh")}


def by_sacrebleu(texts, utility, metrics=METRICS):
    score = metrics[utility].sentence_score
    return [np.mean([score(text, [reference]).score for reference in texts]) for text in texts]


@pytest.mark.parametrize("utility", METRICS)
@settings(deadline=None)
@given(TEXTS)
def test_utilities_are_those_of_sacrebleu(utility, texts):
    np.testing.assert_allclose(expected_utilities(texts, utility), by_sacrebleu(texts, utility), atol=1e-9)


@pytest.mark.parametrize("utility", METRICS)
def test_long_sentences_of_many_characters(utility):
    random = np.random.default_rng(0)
    vocabulary = ["".join(map(chr, random.integers(0x3400, 0x9FFF, 3))) for _ in range(50)]
    texts = [" ".join(random.choice(vocabulary, 40)) for _ in range(8)]
    expected = by_sacrebleu(texts, utility, METRIC_OF_CHINESE)
    np.testing.assert_allclose(expected_utilities(texts, utility, "zh"), expected, atol=1e-9)


@pytest.mark.parametrize("utility", METRICS)
def test_the_best_is_most_like_the_others(utility):
    texts = ["a dog sees two cats", "a dog sees three cats", "a dog sees two birds", "nothing of it"]
    utilities = expected_utilities(texts, utility)
    assert utilities.argmax() == 0
    assert utilities.argmin() == 3
    assert expected_utilities(["one", "two", "two"], utility).argmax() == 1


@pytest.mark.parametrize("utility", METRICS)
def test_candidates_without_text(utility):
    np.testing.assert_array_equal(expected_utilities(["", " "], utility), [0, 0])


OUTPUTS = [Translation(text, -1.0 - rank) for rank, text in enumerate(("eine Katze", "ein Hund", "der Hund"))]


@pytest.mark.parametrize(
    ("reference", "rank"),
    [
        ("ein Hund", 1),
        ("der Hund schläft", 2),
        ("eine Katze und ein Hund", 0),
        ("", 0),
        ("日本", 0),  # nothing in common with any: the best by the model
    ],
)
def test_nearest(reference: str, rank: int) -> None:
    assert nearest(OUTPUTS, reference) is OUTPUTS[rank]


def test_of_equals_the_better_one_is_nearest() -> None:
    twins = [Translation("ein Hund", -1.0), Translation("ein Hund", -2.0)]
    assert nearest(twins, "ein Hund") is twins[0]
