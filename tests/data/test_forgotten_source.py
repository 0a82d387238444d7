"""A source or a problem that was forgotten: what the folder holds, and what would be downloaded."""

from types import SimpleNamespace

import pytest

from t2t_revival import T2TError, registry
from t2t_revival.data import library_sources
from tests.support.line_corpus import snapshot


@pytest.fixture
def german(corpus, tmp_path):
    data = tmp_path / "data"
    registry.problem("translate_ende", data_source=str(corpus), vocab_size=330).generate_data(data)
    return data


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("translate_enfr", "wmt14"),
        ("translate_enfr_rev", "wmt14"),
        ("translate_enzh", "tfds:wmt17_translate/zh-en"),
        ("parse_wsj", "FOLDER"),
    ],
)
def test_a_folder_of_another_problem_is_not_filled_with_the_default_source(german, corpus, name, own):
    before = snapshot(german)
    problem = registry.problem(name)
    forward = name.removesuffix("_rev")
    with pytest.raises(T2TError) as raised:
        problem.generate_data(german)
    assert str(raised.value) == (
        f"{german} holds translate_ende, made from {corpus}, and no data of {forward}: give "
        f"--problem=translate_ende, or --data_source={own} to make data of {forward} beside it"
    )
    with pytest.raises(T2TError, match=rf"no data for {forward} in .*\(it holds translate_ende, made from"):
        problem.open(german)
    assert snapshot(german) == before


@pytest.mark.parametrize(
    ("sizes", "size"), [([1_600_000_000, 103_000_000], "at least 1.7 GB"), ([], "of unknown size")]
)
def test_a_download_is_announced_before_it_begins(sizes, size, tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    said = []

    def download():
        assert said, "downloads before it says so"
        raise OSError("enough")

    builder = SimpleNamespace(
        data_path=tmp_path / "tfds" / "wmt14_translate",
        url_infos={f"http://{number}": SimpleNamespace(size=size) for number, size in enumerate(sizes)},
        download_and_prepare=download,
    )
    monkeypatch.setattr(tfds, "builder", lambda name, **where: builder)
    monkeypatch.setattr(library_sources, "silent_hosts", lambda urls: [])

    def progress(stage, done, total):
        if stage.startswith("downloading"):
            said.append(stage)

    with pytest.raises(T2TError, match="enough"):
        registry.problem("translate_enfr").generate_data(tmp_path / "data", progress=progress)
    assert said == [
        f"downloading tfds:wmt14_translate/fr-en, {size}, and preparing it in {builder.data_path}; for a "
        "corpus of your own, give --data_source=FOLDER with train.en train.fr dev.en dev.fr"
    ]


@pytest.mark.parametrize(
    ("name", "languages"), [("translate_enfr", "en fr"), ("translate_enzh_rev", "en zh")]
)
def test_messages_name_the_files_of_the_problem(name, languages, tmp_path):
    source_lang, target_lang = languages.split()
    files = " ".join(
        f"{split}.{language}" for split in ("train", "dev") for language in (source_lang, target_lang)
    )
    (tmp_path / "empty").mkdir()
    for folder in ("none", "empty"):
        problem = registry.problem(name, data_source=str(tmp_path / folder))
        with pytest.raises(T2TError, match=f"--data_source takes a folder with {files}, "):
            problem.generate_data(tmp_path / "data")


@pytest.mark.parametrize("size", [1, 259, -5, 10**12, True])
def test_an_impossible_vocabulary_size_is_an_error_at_once(size):
    with pytest.raises(T2TError) as raised:
        registry.problem("translate_ende", vocab_size=size)
    assert str(raised.value) == (
        f"--vocab_size={size!r}: not a number of pieces from 260 (256 are bytes) to 10,000,000, such as "
        "8000; 0 chooses by problem and corpus"
    )
