import pytest

from t2t_revival import registry


@pytest.mark.parametrize(
    ("name", "target", "tfds", "pieces"),
    [
        ("translate_ende", "de", "wmt14_translate/de-en", 37_000),
        ("translate_enfr", "fr", "wmt14_translate/fr-en", 32_000),
    ],
)
def test_wmt14_problems_are_section_5_1s(name, target, tfds, pieces):
    problem = registry.problem(name)
    assert (problem.name, problem.source_lang, problem.target_lang) == (name, "en", target)
    assert problem.approx_vocab_size == pieces
    assert problem.make_source("wmt14", None).name == f"tfds:{tfds}"
    assert problem.default_source == "wmt14"


def test_english_to_chinese_has_two_vocabularies_as_in_t2t():
    problem = registry.problem("translate_enzh")
    assert (problem.source_lang, problem.target_lang, problem.separate_vocabularies) == ("en", "zh", True)
    assert problem.make_source(problem.default_source, None).name == "tfds:wmt17_translate/zh-en"
