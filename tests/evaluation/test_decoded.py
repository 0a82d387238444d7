"""Scores of decoded outputs: BLEU and chrF of translations, F1 of trees."""

from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from t2t_revival import Data, Problem, Text2TextProblem, registry
from t2t_revival.data.config import Metadata
from t2t_revival.evaluation.decoded import (
    language_of,
    main_metric,
    report,
    score_outputs,
    scoring_command,
    tokenizer_setting,
)
from t2t_revival.metrics.bleu import sacrebleu_score

GOLD = ["(S (NP (PRP It)) (VP (VBZ eats) (NP (NNS cats))) (. .))", "(NP (NN cat))"]


class UpDown(Text2TextProblem):
    source_lang, target_lang = "up", "down"


class ZhDe(Text2TextProblem):
    source_lang, target_lang = "zh", "de"


def data_of(problem: Problem, target_lang: str = "", parts: dict[str, Data] | None = None) -> Data:
    metadata = Metadata(problem.name, "sample", "en", target_lang, {})
    return Data(problem, Path(), metadata, None, parts or {})


def scoring(problem: Problem, outputs: str, *references: str) -> str:
    return scoring_command(problem, outputs, problem.target_lang, *references).partition(" ")[2]


def test_translations_are_measured_by_sacrebleu():
    problem = registry.problem("translate_ende")
    outputs, references = ["Der Hund schläft heute nicht."], ["Der Hund schläft heute nie."]
    results = score_outputs(problem, outputs, references, problem.target_lang)
    bleu = sacrebleu_score(outputs, references)
    assert (list(results), results["bleu"].score) == (["bleu", "chrf"], bleu.score)
    details = f"{bleu.signature}; chrF2 {results['chrf'].score:.2f}"
    assert report(results, "dev") == f"BLEU {bleu.score:.2f} on dev\n{details}"
    assert scoring(problem, "o u", "r") == "--translation='o u' --reference=r --target_lang=de"


def test_only_languages_that_have_a_tokeniser_are_named():
    assert scoring(UpDown(), "o") == "--translation=o --reference=REFERENCE"


def test_trees_are_measured_by_their_brackets():
    problem = registry.problem("parse_wsj")
    flat = ["(S (NP (XX It)) (XX eats) (XX cats) (XX .))", "(NP (XX cat))"]
    results = score_outputs(problem, flat, GOLD, "")  # found: S, NP and NP; not found: VP and NP
    assert results["f1"].score == pytest.approx(100 * 2 * 3 / (3 + 5))
    assert report(results, "dev").startswith(
        "F1 75.00 on dev\nprecision 100.00, recall 60.00, exact match 50.00"
    )
    assert scoring(problem, "o", "g") == "--predicted=o --gold=g"
    results = score_outputs(
        problem, ["(S (NP (PRP He)) (VP (VBZ runs)))", ""], ["(S (NP (PRP He)) (VP (VBZ runs)))"] * 2, ""
    )
    assert results["f1"].score == 100
    assert report(results, "dev").endswith("; without a tree, not counted: 1")


@pytest.mark.parametrize(("names", "main"), [(("loss",), None), (("accuracy", "chrf"), "chrf")])
def test_a_problem_chooses_its_metrics(monkeypatch, names, main):
    monkeypatch.setattr(UpDown, "eval_metrics", lambda self: names)
    metric = main_metric(UpDown())
    assert (metric and metric.name) == main
    assert scoring(UpDown(), "o") == ""


def test_bleu_of_chinese() -> None:
    """Problems into Chinese, of the package, of a user, and reversed ones, are scored with its tokenizer."""
    outputs, references = ["我们喜欢这只狗。"], ["我们喜欢这只猫。"]

    class Reports(Text2TextProblem):
        source_lang, target_lang = "en", "zh_Hant"

    for problem in (registry.problem("translate_enzh"), Reports(), ZhDe().reversed()):
        result = score_outputs(problem, outputs, references, problem.target_lang)["bleu"]
        assert result.score == BLEU(tokenize="zh").corpus_score(outputs, [references]).score > 50
        assert "tok:zh" in result.signature
        metric = main_metric(problem)
        compared = metric.compare(
            {"a": outputs * 20, "b": references * 20}, references * 20, problem.target_lang
        )
        assert compared["a"].score > 50
        assert tokenizer_setting(data_of(problem)) == {"tokenizer": "zh"}
    assert tokenizer_setting(data_of(registry.problem("translate_ende"))) == {}


def test_each_corpus_of_many_languages_has_its_own_tokenizer() -> None:
    many = registry.problem("translate_many")
    parts = {f"en-{language}": data_of(many, language) for language in ("de", "zh")}
    mixed = data_of(many, "de,zh", parts)
    assert [language_of(data) for data in (*parts.values(), mixed)] == ["de", "zh", ""]
    assert tokenizer_setting(mixed) == {"tokenizer": "13a,zh"}
    assert tokenizer_setting(data_of(many, "de")) == {}
    assert scoring_command(many, "o", "zh").endswith("--target_lang=zh")
