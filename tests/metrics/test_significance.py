"""Paired bootstrap: a worse system is told from an equal one, for BLEU and for F1."""

import random

import numpy as np
import pytest

from t2t_revival import T2TError
from t2t_revival.metrics.metric import Compared, compare_bleu, compare_f1

GOLD = "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))))"
FLAT = "(S (DT the) (NN dog) (VP (VBZ sees) (NP (DT a) (NN cat))))"  # 3 of 4 brackets
WRONG = "(S (NP (DT the) (NN dog)) (VP (VBZ sees)) (NP (DT a) (NN cat)))"  # 3 of 4, and one that is not there


def with_errors(line: str, errors: int, draw: random.Random) -> str:
    tokens = line.split()
    for place in draw.sample(range(len(tokens)), errors):
        tokens[place] = "wrong"
    return " ".join(tokens)


def test_bleu() -> None:
    draw = random.Random(5)
    words = [f"w{i}" for i in range(50)]
    references = [" ".join(draw.choices(words, k=12)) for _ in range(80)]
    good = [with_errors(line, 2, draw) for line in references]
    bad = [with_errors(line, 6, draw) for line in references]
    compared = compare_bleu({"base": good, "bad": bad, "same": list(good)}, references)
    assert compared["base"].p is None
    assert compared["bad"].score < compared["base"].score - 20
    assert compared["bad"].p < 0.01
    assert compared["same"].score == compared["base"].score
    assert compared["same"].p > 0.9
    assert 0 < compared["base"].interval < 10


def test_f1() -> None:
    gold = [GOLD] * 40
    parsers = {
        "base": [FLAT] * 5 + gold[5:],
        "bad": [FLAT, WRONG] * 15 + gold[30:],
        "about the same": gold[:34] + [FLAT] * 6,
        "same": [FLAT] * 5 + gold[5:],
    }
    compared = compare_f1(parsers, gold)
    # 4 gold brackets each: 7 brackets in a sentence of FLAT, 8 in one of WRONG, and 3 match in both.
    assert compared["base"].score == pytest.approx(200 * (160 - 5) / (320 - 5))
    assert compared["bad"].score == pytest.approx(200 * (160 - 30) / (320 - 15))
    assert compared["base"].p is None
    assert compared["bad"].significant
    assert not compared["about the same"].significant
    assert compared["same"].p == 1.0


def test_the_interval_of_f1_is_that_of_its_samples() -> None:
    """One bracket in each of 100 sentences, half of them right: F1 is a share of standard deviation 5%."""
    right, wrong = "(S (NP (NN dog)))", "(S (VP (NN dog)))"
    compared = compare_f1({"base": [right, wrong] * 50}, [right] * 100)
    share = compared["base"].score / 100
    assert share == 0.75
    spread = 1.96 * 100 * 0.5 * np.sqrt(0.25 / 100)  # S always matches, the other in half of the sentences
    assert compared["base"].interval == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize(("p", "significant"), [(None, False), (0.049, True), (0.05, False)])
def test_the_level(p: float | None, significant: bool) -> None:
    assert Compared(30.0, 0.5, p).significant == significant


def test_strings_are_not_taken_apart() -> None:
    with pytest.raises(T2TError, match="base: 'ab' is of type str: give a list"):
        compare_bleu({"base": "ab"}, ["a", "b"])
    with pytest.raises(T2TError, match="references: 'ab' is of type str: give a list"):
        compare_bleu({"base": ["a", "b"]}, "ab")
