"""Data of several corpora: shards of their own, one vocabulary, corpora that come later, other weights."""

import shutil

import pytest

from t2t_revival import T2TError, registry
from tests.support.data_kinds import dev_batches
from tests.support.line_corpus import sentences, snapshot, write_corpus

TAGGED = "corpora: [{source: news}, {name: back, source: talks, tag: <bt>, limit: 9}]"


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    """The folders news, of 300 pairs, and talks, of 60 pairs."""
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "news")
    write_corpus(tmp_path / "talks", train=60, dev=10)
    (tmp_path / "c.yaml").write_text(TAGGED)
    return tmp_path


def problem(data_source=None, **arguments):
    return registry.problem("translate_ende", data_source=data_source, **arguments)


def generated(data_source, data_dir="data", **arguments):
    made = problem(data_source, **arguments)
    return made, made.generate_data(data_dir)


def test_each_corpus_has_shards_of_its_own_and_all_one_vocabulary(corpora):
    """A name may begin as another, and large and long weights stay as they are."""
    listed = "news-old=news:1234567,news=talks:0.1234567"
    made, metadata = generated(listed, vocab_size=330)
    assert metadata.corpora == {"news-old": 1234567, "news": 0.1234567}
    assert metadata.pairs == {"train": 360, "dev": 30}
    assert metadata.splits["train"].examples == 360
    assert {path.name for path in (corpora / "data").iterdir() if "train" not in path.name} == {
        "translate_ende.meta.json",
        "translate_ende.news-old.meta.json",
        "translate_ende.news.meta.json",
        "translate_ende.news-old-dev-00000-of-00001",
        "translate_ende.news-dev-00000-of-00001",
        "vocab.translate_ende.330.spm",
    }
    expected = [*sentences(300, seed="train"), *sentences(60, seed="train")]
    assert sorted(made.open("data").text("train")) == sorted(expected)
    assert {
        name: len(list(corpus.text("dev"))) for name, corpus in made.open("data").corpora("dev").items()
    } == {"news-old": 20, "news": 10}
    assert problem().generate_data("data") == metadata


def test_a_corpus_is_added_and_weights_change_without_making_the_others_again(corpora):
    generated("news=news:1", vocab_size=330)
    shutil.rmtree(corpora / "news")
    before = snapshot(corpora / "data")
    del before["translate_ende.meta.json"]
    times = {path: path.stat().st_mtime_ns for path in (corpora / "data").glob("*news-*")}
    made = problem("news=news:1,talks=talks:3")
    assert not made.has_data("data")
    with pytest.raises(T2TError, match=r"no corpus 'talks' of .*: run t2t-datagen"):
        made.open("data")
    assert made.generate_data("data").corpora == {"news": 1.0, "talks": 3.0}
    assert before.items() <= snapshot(corpora / "data").items()
    assert {path: path.stat().st_mtime_ns for path in times} == times
    other = problem("news=news,talks=talks")
    assert not other.has_data("data")
    assert other.open("data").metadata.corpora == {"news": 300, "talks": 60}
    assert problem().open("data").metadata.corpora == {"news": 1.0, "talks": 3.0}
    other.generate_data("data")
    assert problem().open("data").metadata.corpora == {"news": 300, "talks": 60}


def _full_disk(path, examples):
    raise OSError(28, "No space left on device")


def test_a_corpus_that_fails_leaves_the_others_usable(corpora, monkeypatch):
    generated("news=news:1", vocab_size=330)
    monkeypatch.setattr("t2t_revival.data.workers.write_shard", _full_disk)
    with pytest.raises(T2TError, match=r"cannot write data/.*talks-train-.*: No space left"):
        problem("news=news:1,talks=talks:3").generate_data("data")
    assert len(list(problem("news=news:1").open("data").text("train"))) == 300


def test_an_interrupted_generation_keeps_its_vocabulary_for_another_list(corpora):
    def progress(stage, done, total):
        if stage.startswith("corpus talks"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        problem("news=news:9,talks=talks:1").generate_data("data", progress=progress)
    vocabularies = {path: path.read_bytes() for path in (corpora / "data").glob("vocab.*")}
    made, _ = generated("talks=talks:9,news=news:1")
    assert {path: path.read_bytes() for path in (corpora / "data").glob("vocab.*")} == vocabularies
    assert sorted(made.open("data").text("dev")) == sorted([*sentences(20, "dev"), *sentences(10, "dev")])


def test_a_corpus_without_dev_is_measured_by_the_others(corpora):
    for path in (corpora / "talks").glob("dev.*"):
        path.unlink()
    made, metadata = generated("news=news:1,talks=talks:3", vocab_size=330)
    assert metadata.pairs == {"train": 360, "dev": 20}
    assert list(made.open("data").corpora("dev")) == ["news"]
    with pytest.raises(T2TError, match=r"talks=talks:3: no corpus has a dev split; one must have it"):
        generated("talks=talks:3", "other")


def test_a_tag_is_added_to_a_vocabulary_that_is_updated(corpora):
    generated("news=news:1", vocab_size=330)
    old = corpora / "data" / "vocab.translate_ende.330.spm"
    with pytest.raises(T2TError, match=r"330.spm: the vocabulary lacks the piece '<bt> '.* --update_vocab"):
        generated("c.yaml", "new", vocab_file=old)
    made, _ = generated("c.yaml", "new", vocab_file=old, update_vocab=True, vocab_size=340)
    vocabulary = made.open("new").vocabularies.inputs
    assert vocabulary.tags == ["<bt>"]
    assert vocabulary.encode("<bt> the dog")[0] == 330
    assert vocabulary.pieces[:330] == problem().open("data").vocabularies.inputs.pieces


def test_what_does_not_fit_the_data_is_refused_and_changes_nothing(corpora):
    generated("news=news:1", vocab_size=330)
    before = snapshot(corpora / "data")
    for data_source, message in (
        ("c.yaml", r"data/vocab.translate_ende.330.spm: the vocabulary lacks the piece '<bt> '"),
        ("news", r"holds translate_ende made with data_source=news=.*, not "),
        ("news=talks:1", r"holds translate_ende.news made with data_source=.*/news, not .*/talks"),
    ):
        with pytest.raises(T2TError, match=message):
            generated(data_source)
    assert snapshot(corpora / "data") == before


def test_a_mixture_with_tags_has_no_reverse(corpora):
    generated("c.yaml", vocab_size=330)
    reverse = registry.problem("translate_ende_rev")
    with pytest.raises(T2TError, match="its data has tags such as <bt> before sources"):
        reverse.open("data").split("train")
    with pytest.raises(T2TError, match="its data has tags such as <bt> before sources"):
        registry.problem("translate_ende_rev", data_source="c.yaml").generate_data("new")
    assert not (corpora / "new").exists()


def test_the_reverse_of_a_mixture_swaps_each_corpus(corpora):
    made, _ = generated("news=news:1,talks=talks:3", vocab_size=330)
    reverse = registry.problem("translate_ende_rev")
    assert sorted(reverse.open("data").text("dev")) == sorted(
        (b, a) for a, b in made.open("data").text("dev")
    )
    assert list(reverse.open("data").corpora("dev")) == ["news", "talks"]
    batches, swapped = dev_batches(made, corpora / "data"), dev_batches(reverse, corpora / "data")
    assert sum(len(inputs) for inputs, *_ in batches) == sum(len(inputs) for inputs, *_ in swapped) == 30


def test_cleaning_is_that_of_the_mixture(corpora):
    with (
        (corpora / "talks" / "train.en").open("a") as english,
        (corpora / "talks" / "train.de").open("a") as german,
    ):
        english.write("same\n")
        german.write("same\n")
    _, metadata = generated("talks=talks:1", vocab_size=330, clean=True)
    assert metadata.splits["train"].cleaned["equal sides"] == 1
    metadata = problem("talks=talks:1,news=news:1").generate_data("data")
    assert metadata.clean
    (corpora / "tagged.yaml").write_text("corpora: [{source: talks, tag: <bt>}]")
    _, metadata = generated("tagged.yaml", "tagged", vocab_size=330, clean=True)
    assert metadata.splits["train"].cleaned["equal sides"] == 1
    with pytest.raises(T2TError, match="with clean=True, not False"):
        generated("talks=talks:1", clean=False)


def test_a_mixture_is_refused_where_references_are_not_the_targets(corpora):
    with pytest.raises(T2TError, match="parse_wsj takes one source, not several corpora"):
        registry.problem("parse_wsj", data_source="a=sample,b=sample").generate_data("data")
