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


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("translate_en_ptBR", "translate_en_pt_BR"),
        ("translate_en_pt-BR", "translate_en_pt_BR"),
        ("translate_en_pt_br", "translate_en_pt_BR"),
        ("translate_EN_pt", "translate_en_pt"),
        ("translate_en_sr_latn", "translate_en_sr_Latn"),
        ("translate_en_pt-BR_rev", "translate_en_pt_BR_rev"),
    ],
)
def test_names_of_another_form_say_which_is_meant(name, meant):
    codes = r"\(its languages are codes such as pt, pt_BR or zh_Hans\)"
    with pytest.raises(T2TError, match=rf"unknown problem '{name}'; did you mean {meant}\? {codes}"):
        registry.problem(name)


@pytest.mark.parametrize("name", ["translate_ennde", "translate_ende-rev", "translate_ende_WMT32k"])
def test_other_names_have_near_ones(name):
    with pytest.raises(T2TError, match="did you mean translate_ende"):
        registry.problem(name)


@pytest.mark.parametrize("name", ["translate_en_zh_CN_Hans", "translate_en_pt_BR_PT"])
def test_codes_have_a_script_and_then_a_region(name):
    with pytest.raises(T2TError, match="unknown problem"):
        registry.problem(name)


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
