"""Metrics of decoded outputs: BLEU of translations, F1 of trees, none of others."""

import pytest
from sacrebleu.metrics import BLEU

from t2t_revival import Problem, Text2TextProblem, registry
from t2t_revival.evaluation.bleu import sacrebleu_score
from t2t_revival.evaluation.decoded import metric_for, tokenizer_setting

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
        def eval_metrics(self):
            return ("loss",)

    assert metric_for(Other()) is None


def test_bleu_of_chinese() -> None:
    """Problems into Chinese, of the package, of a user, and reversed ones, are scored with its tokenizer."""
    outputs, references = ["我们喜欢这只狗。"], ["我们喜欢这只猫。"]

    class Reports(Text2TextProblem):
        source_lang, target_lang = "en", "zh_Hant"

    for problem in (registry.problem("translate_enzh"), Reports(), ZhDe().reversed()):
        measure = metric_for(problem)
        result = measure.score(outputs, references)
        assert result.score == BLEU(tokenize="zh").corpus_score(outputs, [references]).score > 50
        assert "tok:zh" in result.details
        assert f"chrF2 {result.chrf:.2f}" in result.details
        compared = measure.compare({"a": outputs * 20, "b": references * 20}, references * 20)
        assert compared["a"].score > 50
        assert tokenizer_setting(problem) == {"tokenizer": "zh"}
    assert tokenizer_setting(registry.problem("translate_ende")) == {}
    assert tokenizer_setting(registry.problem("translate_many")) == {"tokenizer": "by script"}


class ZhDe(Text2TextProblem):
    source_lang, target_lang = "zh", "de"


def test_an_output_without_a_tree_is_counted() -> None:
    tree = "(S (NP (PRP He)) (VP (VBZ runs)))"
    measured = metric_for(registry.problem("parse_wsj")).score([tree, ""], [tree, tree])
    assert measured.score == 100
    assert measured.details.endswith("; without a tree, not counted: 1")
