"""WMT14's problems, and translate_many: languages of corpora, their tags, and what it refuses."""

import pytest

from t2t_revival import T2TError, registry


def many(data_source, **arguments):
    return registry.problem("translate_many", data_source=data_source, **arguments)


def test_corpora_named_after_their_languages_get_the_tag_of_the_target(tmp_path, few_sample_sentences):
    few_sample_sentences(train=40, dev=4, test=4)
    problem = many("en-de=sample:1,fr-en=sample:1", vocab_size=400)
    metadata = problem.generate_data(tmp_path)
    assert (metadata.tags, metadata.source_lang, metadata.target_lang) == (
        ["<2de>", "<2en>"],
        "en,fr",
        "de,en",
    )
    found = problem.open(tmp_path).corpora("dev")
    english = [target for _, target in found["fr-en"].text("dev")]
    assert [source for source, _ in found["en-de"].text("dev")] == [f"<2de> {line}" for line in english]
    assert all(source.startswith("<2en> ") for source, _ in found["fr-en"].text("train"))


def test_other_problems_have_languages_of_their_own(tmp_path):
    path = tmp_path / "many.yaml"
    path.write_text("corpora: [{languages: en-de, source: sample}]")
    with pytest.raises(T2TError, match="corpus 'sample': languages are for problems of several"):
        registry.problem("translate_ende", data_source=str(path)).generate_data(tmp_path / "data")


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
