"""Problems of two languages without a class of their own, with scripts and regions in their names."""

import pytest

from t2t_revival import T2TError, registry


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("translate_en_pt_BR", ("en", "pt_BR")),
        ("translate_pt_BR_en", ("pt_BR", "en")),
        ("translate_en_pt_BR_rev", ("pt_BR", "en")),
        ("translate_zh_Hans_zh_Hant", ("zh_Hans", "zh_Hant")),
        ("translate_zh_Hant_TW_es_419", ("zh_Hant_TW", "es_419")),
    ],
)
def test_languages_may_have_a_script_and_a_region(name, languages):
    problem = registry.problem(name)
    assert (problem.name, problem.source_lang, problem.target_lang) == (name, *languages)


@pytest.mark.parametrize("spelt", ["pt_BR", "pt-BR"])
def test_files_of_a_region(tmp_path, spelt):
    for split in ("train", "dev"):
        for language, text in (("en", "the dog\n"), (spelt, "o cachorro\n")):
            (tmp_path / f"{split}.{language}").write_text(text * 9, encoding="utf-8")
    problem = registry.problem("translate_en_pt_BR", data_source=str(tmp_path), vocab_size=275)
    problem.generate_data(tmp_path / "data")
    assert {*problem.open(tmp_path / "data").text("dev")} == {("the dog", "o cachorro")}
    (tmp_path / "train.pt_BR").write_text("a\n", encoding="utf-8")
    (tmp_path / "train.pt-BR").write_text("b\n", encoding="utf-8")
    with pytest.raises(T2TError, match=r"train\.pt_BR and train\.pt-BR differ: remove one of them"):
        registry.problem("translate_en_pt_BR", data_source=str(tmp_path)).generate_data(tmp_path / "other")
