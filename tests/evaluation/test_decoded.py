"""Metrics of decoded outputs: BLEU of translations, F1 of trees, none of others."""

import pytest

from t2t_revival import registry
from t2t_revival.evaluation.bleu import sacrebleu_score
from t2t_revival.evaluation.decoded import metric_for
from t2t_revival.problems import Problem, Text2TextProblem

GOLD = ["(S (NP (PRP It)) (VP (VBZ eats) (NP (NNS cats))) (. .))", "(NP (NN cat))"]


def test_translations_are_measured_by_sacrebleu():
    measure = metric_for(registry.problem("translate_ende"))
    outputs, references = ["Der Hund schläft heute nicht."], ["Der Hund schläft heute nie."]
    measured = measure.score(outputs, references)
    assert measured.score == sacrebleu_score(outputs, references).score
    assert "tok:13a" in measured.details
    assert measure.command("o u", "r") == "t2t-bleu --translation='o u' --reference=r --target_lang=de"


def test_only_languages_that_have_a_tokeniser_are_named():
    class UpDown(Text2TextProblem):
        source_lang, target_lang = "up", "down"

    assert metric_for(UpDown()).command("o", "r") == "t2t-bleu --translation=o --reference=r"


def test_why_short_outputs_have_no_score():
    measured = metric_for(registry.problem("translate_ende")).score(["Ein Hund"], ["Ein Hund"])
    assert (measured.score, "; no 4-grams: " in measured.details) == (0, True)


def test_trees_are_measured_by_their_brackets():
    measure = metric_for(registry.problem("parse_wsj"))
    assert (measure.name, measure.title) == ("f1", "F1")
    flat = ["(S (NP (XX It)) (XX eats) (XX cats) (XX .))", "(NP (XX cat))"]
    measured = measure.score(flat, GOLD)  # found: S, NP and NP; not found: VP and NP
    assert measured.score == pytest.approx(100 * 2 * 3 / (3 + 5))
    assert "precision 100.00, recall 60.00, exact match 50.00" in measured.details
    assert measure.command("o", "g") == "t2t-parseval --predicted=o --gold=g"


def test_a_problem_of_another_kind_has_no_measure():
    class Other(Problem):
        generate_data = has_data = feature_encoders = dataset = approx_vocab_size = None

    assert metric_for(Other()) is None
