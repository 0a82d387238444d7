"""Sets of TensorFlow Datasets and of the Hugging Face Hub that the libraries themselves wrote to disk."""

import pickle
import sys
from types import SimpleNamespace

import pytest

from t2t_revival import T2TError, registry
from t2t_revival.data import library_sources
from t2t_revival.data.sources import source
from tests.support.line_corpus import all_pairs, opened

LINES = {"train": 2500, "validation": 30, "test": 10}  # more in train than are read at once
HUB = "https://hub.example"


@pytest.fixture(scope="module")
def tfds_set(tmp_path_factory):
    """Translation set that TFDS itself writes to disk and loads."""
    tfds = pytest.importorskip("tensorflow_datasets")
    import tensorflow as tf

    folder = tmp_path_factory.mktemp("tfds")
    splits = {"train": 25, "validation": 3}

    def sentences(split, text):
        return [f"{split} {number}{text}" for number in range(splits[split])]

    tfds.dataset_builders.store_as_tfds_dataset(
        name="tiny_translate",
        version="1.0.0",
        data_dir=folder,
        features=tfds.features.FeaturesDict({"de": tfds.features.Text(), "en": tfds.features.Text()}),
        split_datasets={
            split: tf.data.Dataset.from_tensor_slices(
                {"en": sentences(split, "\ndog "), "de": sentences(split, " Hünd")}
            )
            for split in splits
        },
    )
    tfds.core.add_data_dir(folder)
    return "tiny_translate"


def test_a_prepared_tfds_set_is_read_whatever_its_direction_without_network(tfds_set, monkeypatch):
    monkeypatch.setattr(library_sources, "silent_hosts", lambda urls: pytest.fail("asked"))
    forward = opened(f"tfds:{tfds_set}")
    assert forward.splits() == ("train", "dev")
    assert forward.count("train") == 25
    pairs = all_pairs(forward)
    assert sorted(pairs) == sorted((f"train {n} dog ", f"train {n} Hünd") for n in range(25))
    assert all_pairs(source(f"tfds:{tfds_set}", "de", "en")) == [pair[::-1] for pair in pairs]
    assert [list(forward.pairs("train", n, n + 5)) for n in range(0, 25, 5)] == [
        pairs[n : n + 5] for n in range(0, 25, 5)
    ]
    assert list(pickle.loads(pickle.dumps(forward)).pairs("dev", 0, 3)) == all_pairs(forward, "dev")
    with pytest.raises(T2TError, match="has de, en, not 'fr'"):
        next(source(f"tfds:{tfds_set}", "en", "fr").pairs("train", 0, 1))


def test_a_worker_elsewhere_reads_what_was_prepared_where_the_run_began(tfds_set, tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    asked, builder = [], tfds.builder
    monkeypatch.setattr(tfds, "builder", lambda name, **where: [asked.append(where), builder(name)][1])
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    here = opened(f"tfds:{tfds_set}")
    packed = pickle.dumps(here)
    here.splits()
    monkeypatch.delenv("TFDS_DATA_DIR")
    pickle.loads(packed).splits()
    assert asked == [{}, {"data_dir": str(tmp_path)}]


def test_a_set_that_tfds_does_not_know_is_an_error_with_the_choices(monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")

    def unreachable(name):
        raise ConnectionError(f"cannot reach the mirror of {name}\nand more")

    monkeypatch.setattr(tfds, "builder", unreachable)
    with pytest.raises(T2TError) as raised:
        opened("tfds:nowhere/de-en").splits()
    message = str(raised.value)
    assert "tfds:nowhere/de-en: cannot be loaded (ConnectionError: cannot reach the mirror" in message
    assert "\n" not in message
    assert all(choice in message for choice in ("a folder", "sample", "TFDS_DATA_DIR"))


def test_a_tfds_set_is_not_downloaded_where_no_host_answers(tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    urls = {"http://mirror.test/a.tgz": "checksum"}
    asked = []
    builder = SimpleNamespace(data_path=tmp_path / "absent", url_infos=urls)  # has no download_and_prepare
    monkeypatch.setattr(tfds, "builder", lambda name: builder)
    monkeypatch.setattr(
        library_sources, "silent_hosts", lambda urls: [asked.extend(urls), "http://mirror.test"][1:]
    )
    with pytest.raises(T2TError, match=r"tfds:a/b: .* nothing .* http://mirror\.test: "):
        opened("tfds:a/b").splits()
    assert asked == list(urls)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """The library, with a cache of the tests' own and without the hub."""
    datasets = pytest.importorskip("datasets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(library_sources, "silent_hosts", lambda urls: [HUB])
        yield datasets


def rows(split):
    return [(f"{split} {number}\ndog ", f"{split} {number} Hünd") for number in range(LINES[split])]


def clean(pairs):
    return [(source.replace("\n", " "), target) for source, target in pairs]


def plain_set(datasets, split):
    sides = dict(zip(("en", "de"), map(list, zip(*rows(split), strict=True)), strict=True))
    return datasets.Dataset.from_dict({"id": list(range(LINES[split])), **sides})


@pytest.fixture(scope="module")
def saved(datasets, tmp_path_factory):
    """Set with a column "translation", in two Arrow files a split, as `save_to_disk` writes it."""
    features = datasets.Features({"translation": datasets.Translation(languages=["de", "en"])})
    folder = tmp_path_factory.mktemp("saved")
    parts = {}
    for split in LINES:
        examples = [{"de": target, "en": source} for source, target in rows(split)]
        parts[split] = datasets.Dataset.from_dict({"translation": examples}, features=features)
    datasets.DatasetDict(parts).save_to_disk(folder, num_shards=dict.fromkeys(parts, 2))
    return folder


def test_a_saved_set_is_read_whatever_its_direction(saved):
    forward = opened(f"hf:{saved}")
    assert forward.name == f"hf:{saved}"
    assert forward.splits() == ("train", "dev", "test")
    assert [forward.count(split) for split in forward.splits()] == list(LINES.values())
    for start, stop in ((0, 2500), (0, 0), (0, 1), (999, 1001), (1249, 1251), (300, 2400), (2499, 2500)):
        assert list(forward.pairs("train", start, stop)) == clean(rows("train")[start:stop])
    assert all_pairs(source(f"hf:{saved}", "de", "en"), "dev") == [
        (target, source) for source, target in clean(rows("validation"))
    ]


def test_a_worker_maps_the_files_that_were_found(saved, datasets, monkeypatch):
    corpus = opened(f"hf:{saved}")
    corpus.splits()
    packed = pickle.dumps(corpus)
    assert len(packed) < 10_000
    monkeypatch.setattr(datasets, "load_from_disk", lambda folder: pytest.fail("loaded again"))
    assert list(pickle.loads(packed).pairs("dev", 10, 20)) == clean(rows("validation")[10:20])


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_folder_of_data_files_is_read(kind, datasets, tmp_path):
    for split in LINES:
        getattr(plain_set(datasets, split), f"to_{kind}")(tmp_path / f"{split}.{kind}")
    corpus = opened(f"hf:{tmp_path}")
    assert corpus.splits() == ("train", "dev", "test")
    assert all_pairs(corpus) == clean(rows("train"))


def two_splits(datasets, folder, columns):
    import pyarrow

    part = datasets.Dataset(pyarrow.table(columns))
    datasets.DatasetDict({"train": part, "validation": part}).save_to_disk(folder)
    return f"hf:{folder}"


def test_null_is_an_empty_text(datasets, tmp_path):
    name = two_splits(datasets, tmp_path, {"en": ["a", None, ""], "de": [None, "b", ""]})
    assert all_pairs(opened(name)) == [("a", ""), ("", "b"), ("", "")]


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"id": [1], "en": ["a"], "text": ["b"]}, "has id, en, text, not 'de'"),
        ({"translation": [{"en": "a", "fr": "b"}], "de": ["c"]}, "has en, fr, not 'de'"),
        ({"translation": ["a"], "en": ["b"]}, "has translation, en, not 'de'"),
        ({"en": ["a"], "de": [7]}, "'de' is int64, not text"),
        ({"en": [["a", "b"]], "de": ["c"]}, "'en' is list<.*>, not text"),
        ({"translation": [{"translation": ["b"], "language": ["de"]}]}, "has .*language, not 'en'"),
        ("not UTF-8", "cannot be loaded .UnicodeDecodeError"),
    ],
)
def test_a_set_without_texts_of_both_languages_is_an_error(columns, fault, datasets, tmp_path):
    import pyarrow

    if columns == "not UTF-8":
        columns = {"en": ["two"], "de": pyarrow.array([b"z\xfcwei"]).view(pyarrow.string())}
    with pytest.raises(T2TError, match=f"data_source=hf:.* {fault}"):
        next(opened(two_splits(datasets, tmp_path, columns)).pairs("train", 0, 1))


def test_a_folder_that_is_no_set_is_an_error(datasets, tmp_path):
    """No code of a set is executed."""
    plain_set(datasets, "test").save_to_disk(tmp_path / "one")
    (tmp_path / "empty").mkdir()
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "script.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')")
    for name, fault in (
        ("one", "no dev split, only train"),
        ("none", rf"hf:{tmp_path}/none: no such folder"),
        ("empty", r"cannot be loaded \(EmptyDatasetError"),
        ("script", r"cannot be loaded .*scripts are no longer supported"),
    ):
        with pytest.raises(T2TError, match=fault):
            opened(f"hf:{tmp_path}/{name}").counts()
    assert not (tmp_path / "executed").exists()


def test_a_folder_is_named_absolutely(datasets, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert opened("hf:here").name == opened("hf:./here").name == f"hf:{tmp_path}/here"


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("hf:wmt/wmt14/de-en", ("wmt/wmt14", "de-en")),
        ("hf:owner/pairs", ("owner/pairs",)),
        ("hf:pairs", ("pairs",)),
    ],
)
def test_a_set_of_the_hub_is_named_as_there(name, asked, datasets, monkeypatch):
    loaded = []

    def load_dataset(*arguments):
        loaded.append(arguments)
        return {split: plain_set(datasets, split) for split in LINES}

    monkeypatch.setattr(library_sources, "silent_hosts", lambda urls: [])
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert opened(name).count("dev") == 30
    assert loaded == [asked]


def test_a_hub_that_does_not_answer_is_named_and_asked_again_later(datasets):
    import huggingface_hub

    with pytest.raises(T2TError, match=f"hf:owner/pairs: .* nothing answers at {HUB}: "):
        opened("hf:owner/pairs").splits()
    assert not datasets.config.HF_HUB_OFFLINE
    assert not huggingface_hub.constants.HF_HUB_OFFLINE


def test_a_user_who_is_offline_is_told_by_the_library(datasets, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(library_sources, "silent_hosts", lambda urls: pytest.fail("asked"))
    with pytest.raises(T2TError, match=r"cannot be loaded .*[Oo]ffline"):
        opened("hf:owner/pairs").splits()


def test_a_set_in_the_cache_needs_no_network_and_has_its_version(datasets, tmp_path, monkeypatch):
    """The cache is as it is after a download."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(library_sources, "silent_hosts", lambda urls: [HUB])
    for split in LINES:
        plain_set(datasets, split).to_parquet(tmp_path / "pairs" / f"{split}.parquet")
    opened(f"hf:{tmp_path}/pairs").splits()
    (tmp_path / "cache" / "pairs").rename(tmp_path / "cache" / "owner___pairs")
    assert all_pairs(opened("hf:owner/pairs"), "dev") == clean(rows("validation"))
    (folder,) = (tmp_path / "cache" / "owner___pairs").glob("*/*/*/")
    assert opened("hf:owner/pairs").version() == folder.name


def test_a_huggingface_set_of_tfds_waits_for_no_silent_hub(datasets, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")

    def builder(name):
        assert datasets.config.HF_HUB_OFFLINE
        raise ConnectionError("offline")

    monkeypatch.setattr(tfds, "builder", builder)
    with pytest.raises(T2TError, match=rf"tfds:huggingface:a/b: not on .* nothing answers at {HUB}: "):
        opened("tfds:huggingface:a/b").splits()


def test_without_the_library_its_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(T2TError, match=r'hf:.* needs datasets .*: pip install "t2t_revival\[hf\]"'):
        opened(f"hf:{tmp_path}").splits()


def test_a_tfds_set_knows_its_version_and_data_made_of_another_is_an_error(tfds_set, tmp_path, monkeypatch):
    problem = registry.problem("translate_ende", data_source=f"tfds:{tfds_set}", vocab_size=300)
    made = problem.generate_data(tmp_path)
    assert made.origins.version == "1.0.0"
    assert problem.open(tmp_path).check_origins() == []
    monkeypatch.setattr(library_sources.TfdsSource, "version", lambda self: "1.0.1")
    for check in (lambda data: problem.open(data).check_origins(), problem.generate_data):
        with pytest.raises(T2TError, match=r"tiny_translate .* was version 1\.0\.0 and is 1\.0\.1"):
            check(tmp_path)
    monkeypatch.setattr(library_sources.TfdsSource, "version", lambda self: "")
    (note,) = problem.open(tmp_path).check_origins()
    assert note.startswith(f"tfds:{tfds_set} is not here: ")


def test_a_set_that_is_not_here_has_no_version(datasets, monkeypatch):
    monkeypatch.setattr(library_sources, "silent_hosts", lambda urls: pytest.fail("asked"))
    assert opened("hf:owner/pairs").version() == ""
    assert opened("tfds:no_such_set/de-en").version() == ""


def test_the_files_of_a_folder_of_a_library_are_recorded(saved):
    files = opened(f"hf:{saved}").files()
    assert {file.name for file in files} >= {"dataset_dict.json", "state.json", "data-00000-of-00002.arrow"}
