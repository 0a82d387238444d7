"""Lists of corpora: `--data_source` and YAML files, their faults, and their weights."""

import textwrap

import pytest

from t2t_revival import T2TError
from t2t_revival.data.mixture import Corpus, is_mixture, parse


def yaml_file(tmp_path, text):
    path = tmp_path / "corpora.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def test_a_list_has_names_sources_and_weights():
    mixture = parse(
        "news=/data/news:3, talks=/data/ted:0.5,tfds:wmt14_translate/de-en:1,/data/web:2,hf:me/set:0"
    )
    assert mixture.corpora == (
        Corpus("news", "/data/news", 3.0),
        Corpus("talks", "/data/ted", 0.5),
        Corpus("wmt14_translate-de-en", "tfds:wmt14_translate/de-en", 1.0),
        Corpus("web", "/data/web", 2.0),
        Corpus("me-set", "hf:me/set", 0.0),
    )


def test_what_is_a_list_and_what_one_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a,b=c").mkdir()
    for data_source in ("sample", "wmt14", "tfds:a/b", "hf:a/b", "/data/news", "a,b=c"):
        assert not is_mixture(data_source)
    for data_source in ("news=a", "a,b", "sample,a", "corpora.yaml", "corpora.yml"):
        assert is_mixture(data_source)


def test_a_yaml_file_has_tags_limits_and_both_directions(tmp_path):
    path = yaml_file(
        tmp_path,
        """
        corpora:
          - {name: news, source: news, weight: 2}
          - {name: back, source: /data/back, weight: 1, tag: <bt>, limit: 50}
          - {source: tfds:a/b, weight: 1, both_directions: true, tag: [<2de>, <2en>], languages: en-de}
        """,
    )
    assert parse(str(path)).corpora == (
        Corpus("news", str(tmp_path / "news"), 2.0),
        Corpus("back", "/data/back", 1.0, "<bt>", 50),
        Corpus("a-b", "tfds:a/b", 0.5, "<2de>", languages=("en", "de")),
        Corpus("a-b_rev", "tfds:a/b", 0.5, "<2en>", languages=("en", "de"), swapped=True),
    )
    assert parse(str(path)).tags == ["<bt>", "<2de>", "<2en>"]


def test_a_folder_whose_name_begins_like_a_set_is_relative_to_the_file(tmp_path):
    path = yaml_file(tmp_path, "corpora: [{source: samples}, {source: wmt14_small/x}, {source: sample}]")
    sources = [corpus.source for corpus in parse(str(path)).corpora]
    assert sources == [str(tmp_path / "samples"), str(tmp_path / "wmt14_small/x"), "sample"]


def test_a_list_may_be_longer_than_a_file_name():
    text = ",".join(f"corpus{number}=folder:1e-2" for number in range(500))
    assert is_mixture(text)
    assert {corpus.weight for corpus in parse(text).corpora} == {0.01}


def test_without_weights_all_examples_have_the_same_share_unless_there_is_a_temperature(tmp_path):
    sizes = {"a": 100, "b": 10_000}
    assert parse("a=x,b=y").weights(sizes) == sizes
    path = yaml_file(tmp_path, "{temperature: 2, corpora: [{name: a, source: x}, {name: b, source: y}]}")
    assert parse(str(path)).weights(sizes) == {"a": 10.0, "b": 100.0}
    assert parse("a=x:3,b=y:1").weights(sizes) == {"a": 3.0, "b": 1.0}


@pytest.mark.parametrize(
    ("data_source", "fault"),
    [
        ("a=x:1,b=y", "corpus 'b' has no weight: give all a weight, or none"),
        ("a=x:-1,b=y:2", "corpus 'a': weight -1 is not a number of 0 or more"),
        ("a=x:nan,b=y:2", "corpus 'a': weight nan is not a number of 0 or more"),
        ("a=x,", "'' is not NAME=SOURCE:WEIGHT"),
        ("a=,b=y", "'a=' is not NAME=SOURCE:WEIGHT"),
    ],
)
def test_a_faulty_list_is_an_error_that_quotes_it(data_source, fault):
    assert fault_of(data_source).startswith(f"--data_source={data_source}: {fault}")


def fault_of(data_source):
    with pytest.raises(T2TError) as error:
        parse(data_source)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("corpora: [{source: x", "line 1: not valid YAML"),
        ("a list", "the file: not a mapping of corpora, temperature"),
        ("corpora: []", "it lists no corpora"),
        ("corpora: [{name: a}]", "corpus 1: source is missing"),
        ("corpora: [{source: x}, {source: y, wieght: 3}]", "corpus 2: unknown key 'wieght'"),
        ("corpora: [{source: x, weight: heavy}]", "corpus 1: weight is 'heavy', not a number"),
        ("corpora: [{source: x, limit: -3}]", "corpus 1: limit is -3, not a number of pairs"),
        ("corpora: [{source: x, limit: true}]", "corpus 1: limit is True, not a whole number"),
        ("corpora: [{source: x, name: 2019}]", "corpus 1: name is 2019, not a text; where YAML takes it"),
        ("corpora: [{source: x, name: 2020-13-45}]", "not valid YAML (month must be in 1..12)"),
        ("[" * 3000, "not valid YAML (maximum recursion depth"),
        ("corpora:\n- {source: x, weight: 1, weight: 2}", "line 2: 'weight' is given twice"),
        ("corpora: [{source: x, tag: <a> b}]", "corpus 1: tag '<a> b' is not a text without spaces"),
        ("corpora: [{source: x, tag: <a>, both_directions: true}]", "corpus 1: tag is '<a>', but"),
        ("corpora: [{source: x, tag: [a, b]}]", "corpus 1: tag is ['a', 'b'], but its directions"),
        ("corpora: [{source: x, languages: ende}]", "corpus 1: languages is 'ende', not SOURCE-TARGET"),
        ("corpora: [{name: a b, source: x}]", "corpus 'a b': a name consists of letters"),
        ("{temperature: 0, corpora: [{source: x}]}", "temperature 0 is not a number of 1 or more"),
        ("{temperature: 2, corpora: [{source: x, weight: 1}]}", "it has weights and a temperature"),
    ],
)
def test_a_faulty_file_is_an_error_that_names_the_entry(tmp_path, text, fault):
    path = yaml_file(tmp_path, text)
    assert fault_of(str(path)).startswith(f"--data_source={path}: {fault}")
    path.write_bytes(b"\xff\xfe\x00")
    assert f"{path}: cannot be read (it is not UTF-8)" in fault_of(str(path))
