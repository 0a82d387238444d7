"""Data of several corpora: shards of their own, one vocabulary, corpora that come later, other weights."""

import dataclasses
import itertools
import shutil

import pytest

from t2t_revival import registry
from t2t_revival.data.batching import TrainingBatches
from t2t_revival.data.examples import read
from t2t_revival.data.mixture import CorpusSource, parse
from t2t_revival.data.mixture_generation import MixtureSource
from t2t_revival.data.sources import source
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from tests.support.line_corpus import flip, interrupt_at, sentences, snapshot, write_corpus

HPARAMS = HParams(batch_size=256, max_length=64)


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    """The folders news, of 300 pairs, and talks, of 60 pairs."""
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "news")
    write_corpus(tmp_path / "talks", train=60, dev=10)
    return tmp_path


def problem(data_source=None, **arguments):
    return registry.problem("translate_ende", data_source=data_source, **arguments)


def generated(data_source, data_dir="data", **arguments):
    made = problem(data_source, **arguments)
    return made, made.generate_data(data_dir)


def test_each_corpus_has_shards_of_its_own_and_all_one_vocabulary(corpora):
    made, metadata = generated("news=news:1,talks=talks:3", vocab_size=330)
    assert metadata.corpora == {"news": 1.0, "talks": 3.0}
    assert metadata.pairs == {"train": 360, "dev": 30}
    assert metadata.splits["train"].examples == 360
    assert {path.name for path in (corpora / "data").iterdir() if "train" not in path.name} == {
        "translate_ende.meta.json",
        "translate_ende.news.meta.json",
        "translate_ende.talks.meta.json",
        "translate_ende.news-dev-00000-of-00001",
        "translate_ende.talks-dev-00000-of-00001",
        "vocab.translate_ende.330.spm",
    }
    expected = [*sentences(300, seed="train"), *sentences(60, seed="train")]
    assert sorted(made.text("train", "data")) == sorted(expected)
    assert {
        name: len(list(corpus.text("dev", "data"))) for name, corpus in made.corpora("dev", "data").items()
    } == {
        "news": 20,
        "talks": 10,
    }


def test_a_corpus_is_added_and_weights_change_without_making_the_others_again(corpora):
    generated("news=news:1", vocab_size=330)
    before = snapshot(corpora / "data")
    times = {path: path.stat().st_mtime_ns for path in (corpora / "data").glob("*news-*")}
    made = problem("news=news:1,talks=talks:3")
    assert not made.has_data("data")
    with pytest.raises(T2TError, match=r"data lacks the corpus 'talks': run t2t-datagen"):
        made.metadata("data")
    assert made.generate_data("data").corpora == {"news": 1.0, "talks": 3.0}
    after = snapshot(corpora / "data")
    assert {name: after[name] for name in before if name != "translate_ende.meta.json"} == {
        name: content for name, content in before.items() if name != "translate_ende.meta.json"
    }
    assert {path: path.stat().st_mtime_ns for path in times} == times
    other = problem("news=news,talks=talks")
    assert not other.has_data("data")
    assert other.metadata("data").corpora == {"news": 300, "talks": 60}
    assert problem().metadata("data").corpora == {"news": 1.0, "talks": 3.0}
    other.generate_data("data")
    assert problem().metadata("data").corpora == {"news": 300, "talks": 60}


def test_without_a_source_the_mixture_of_the_data_is_verified(corpora, tmp_path_factory, monkeypatch):
    generated("news=news:1,talks=talks:3", vocab_size=330)
    whole = snapshot(corpora / "data")
    shard = corpora / "data" / "translate_ende.talks-train-00003-of-00010"
    shard.write_bytes(flip(shard.read_bytes()))
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    problem().generate_data(corpora / "data")
    assert snapshot(corpora / "data") == whole


@pytest.mark.parametrize("corpus", ["news", "talks"])
def test_after_an_interruption_the_rest_is_made(corpora, corpus):
    made, _ = generated("news=news:1,talks=talks:3", "whole", vocab_size=330)
    seen = []

    def progress(stage, done, total):
        seen.append(stage)
        if stage == "pairs" and done and any(f"corpus {corpus}:" in earlier for earlier in seen):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.generate_data("data", progress=progress)
    made.generate_data("data")
    assert snapshot(corpora / "data") == snapshot(corpora / "whole")


def test_a_corpus_that_fails_leaves_the_others_usable(corpora, monkeypatch):
    generated("news=news:1", vocab_size=330)
    monkeypatch.setattr("t2t_revival.data.workers.write_shard", _full_disk)
    with pytest.raises(
        T2TError, match=r"cannot write data/.*talks-train-.*: No space left .*; free disk space"
    ):
        problem("news=news:1,talks=talks:3").generate_data("data")
    assert len(list(problem("news=news:1").text("train", "data"))) == 300


def test_a_name_may_begin_as_another_with_a_hyphen(corpora):
    made, metadata = generated("news-old=news:1,news=talks:1", vocab_size=330)
    assert list(metadata.corpora) == ["news-old", "news"]
    assert len(list(made.corpora("train", "data")["news"].text("train", "data"))) == 60


def test_an_interrupted_generation_keeps_its_vocabulary_for_another_list(corpora):
    def progress(stage, done, total):
        if stage.startswith("corpus talks"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        problem("news=news:9,talks=talks:1").generate_data("data", progress=progress)
    vocabularies = {path: path.read_bytes() for path in (corpora / "data").glob("vocab.*")}
    made, _ = generated("talks=talks:9,news=news:1")
    assert {path: path.read_bytes() for path in (corpora / "data").glob("vocab.*")} == vocabularies
    assert sorted(made.text("dev", "data")) == sorted([*sentences(20, "dev"), *sentences(10, "dev")])


def test_large_and_long_weights_stay_as_they_are_where_no_source_is_given(corpora):
    _, metadata = generated("news=news:1234567,talks=talks:0.1234567", vocab_size=330)
    assert problem().generate_data("data") == metadata


def test_weights_change_and_corpora_come_where_the_text_of_the_others_is_gone(corpora):
    generated("news=news:1", vocab_size=330)
    shutil.rmtree(corpora / "news")
    _, metadata = generated("news=news:1,talks=talks:3")
    assert metadata.pairs == {"train": 360, "dev": 30}


def _full_disk(path, examples):
    raise OSError(28, "No space left on device")


def test_an_interrupted_vocabulary_leaves_nothing(corpora):
    with pytest.raises(KeyboardInterrupt):
        problem("news=news:1,talks=talks:3").generate_data("data", progress=interrupt_at("vocabulary", 0))
    assert not (corpora / "data").exists()


def test_a_corpus_without_dev_is_measured_by_the_others(corpora):
    for path in (corpora / "talks").glob("dev.*"):
        path.unlink()
    made, metadata = generated("news=news:1,talks=talks:3", vocab_size=330)
    assert metadata.pairs == {"train": 360, "dev": 20}
    assert list(made.corpora("dev", "data")) == ["news"]
    with pytest.raises(T2TError, match=r"talks=talks:3: no corpus has a dev split; one must have it"):
        generated("talks=talks:3", "other")


def test_tags_are_one_piece_before_the_sources(corpora):
    (corpora / "c.yaml").write_text(
        "corpora: [{source: news}, {name: back, source: talks, tag: <bt>, limit: 9}]"
    )
    made, metadata = generated("c.yaml", vocab_size=330)
    vocabulary = made.vocabulary("data")
    assert (metadata.tags, vocabulary.tags) == (["<bt>"], ["<bt>"])
    back = made.corpora("train", "data")["back"]
    plain = dict(sentences(60, seed="train"))
    found = [inputs for inputs, _ in read(back.shards("train", "data"))]
    tag = vocabulary.pieces.index("<bt>\u2581")
    expected = [[tag, *vocabulary.encode(text), 1] for text in list(plain)[:9]]
    assert sorted(found) == sorted(expected)


def test_data_without_a_tag_refuses_it_before_anything_is_made(corpora):
    generated("news=news:1", vocab_size=330)
    before = snapshot(corpora / "data")
    (corpora / "c.yaml").write_text("corpora: [{source: news}, {name: back, source: talks, tag: <bt>}]")
    with pytest.raises(
        T2TError, match=r"tag '<bt>' is not in data/vocab.translate_ende.330.spm: give another "
    ):
        generated("c.yaml")
    assert snapshot(corpora / "data") == before


def test_a_tag_is_added_to_a_vocabulary_that_is_updated(corpora):
    generated("news=news:1", vocab_size=330)
    (corpora / "c.yaml").write_text("corpora: [{source: news}, {name: back, source: talks, tag: <bt>}]")
    old = corpora / "data" / "vocab.translate_ende.330.spm"
    with pytest.raises(T2TError, match=r"330.spm: the vocabulary lacks the piece '<bt> '.* --update_vocab"):
        generated("c.yaml", "new", vocab_file=old)
    made, _ = generated("c.yaml", "new", vocab_file=old, update_vocab=True, vocab_size=340)
    vocabulary = made.vocabulary("new")
    assert vocabulary.tags == ["<bt>"]
    assert vocabulary.encode("<bt> the dog")[0] == 330
    assert vocabulary.pieces[:330] == problem().vocabulary("data").pieces


def test_one_source_and_a_mixture_do_not_share_a_folder(corpora):
    generated("news", vocab_size=330)
    with pytest.raises(T2TError, match="which is no mixture: give another --data_dir"):
        generated("news=news:1")
    generated("news=news:1", "mixed", vocab_size=330)
    with pytest.raises(T2TError, match=r"holds translate_ende made from news=.*, not from"):
        generated("news", "mixed")


def test_a_corpus_of_another_folder_is_refused(corpora):
    generated("news=news:1", vocab_size=330)
    with pytest.raises(T2TError, match=r"holds translate_ende.news made from .*/news, not from .*/talks"):
        generated("news=talks:1")


def test_a_mixture_with_tags_has_no_reverse(corpora):
    (corpora / "c.yaml").write_text("corpora: [{source: news, tag: <a>}]")
    generated("c.yaml", vocab_size=330)
    reverse = registry.problem("translate_ende_rev")
    with pytest.raises(T2TError, match="its data has tags such as <a> before sources"):
        reverse.shards("train", "data")
    with pytest.raises(T2TError, match="its data has tags such as <a> before sources"):
        registry.problem("translate_ende_rev", data_source="c.yaml").generate_data("new")
    assert not (corpora / "new").exists()


def test_the_reverse_of_a_mixture_swaps_each_corpus(corpora):
    made, _ = generated("news=news:1,talks=talks:3", vocab_size=330)
    reverse = registry.problem("translate_ende_rev")
    assert sorted(reverse.text("dev", "data")) == sorted((b, a) for a, b in made.text("dev", "data"))
    assert list(reverse.corpora("dev", "data")) == ["news", "talks"]
    assert reverse.shards("train", "data").corpora == made.shards("train", "data").corpora


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
    (corpora / "c.yaml").write_text("corpora: [{source: talks, tag: <bt>}]")
    _, metadata = generated("c.yaml", "tagged", vocab_size=330, clean=True)
    assert metadata.splits["train"].cleaned["equal sides"] == 1
    with pytest.raises(T2TError, match="with --clean, not without it"):
        generated("talks=talks:1", clean=False)


def test_the_vocabulary_is_learned_by_weight(corpora):
    folders = {name: source(name, "en", "de") for name in ("news", "talks")}

    def characters(weights):
        mixture = parse(weights)
        wrapped = {corpus.name: CorpusSource(folders[corpus.name], corpus) for corpus in mixture.corpora}
        lines = list(MixtureSource(weights, mixture, wrapped).text(clean=False))
        return sum(map(len, lines)), lines

    _, lines = characters("news=news,talks=talks")
    assert len(lines) == 2 * 360  # each line once
    total, lines = characters("news=news:1,talks=talks:1")
    talks = set(itertools.chain(*sentences(60, seed="train")))
    of_talks = sum(len(line) for line in lines if line in talks)
    assert 0.4 < of_talks / total < 0.75  # half, and what the larger corpus has in common with it


def test_training_resumes_at_the_batch_and_at_other_weights_at_the_epoch(corpora):
    made, _ = generated("news=news:1,talks=talks:3", vocab_size=330)
    splits = made.vocabularies("data").splits()
    hparams = dataclasses.replace(HPARAMS, subword_dropout=0.1)

    def batches(start=None, data_source=None):
        shards = problem(data_source).shards("train", "data")
        more = {"start": start} if start else {}
        return TrainingBatches(shards, hparams, seed=3, chunk=100, splits=splits, **more)

    stream = batches()
    expected = [element[0]["inputs"].numpy().tolist() for element in stream.dataset().take(60)]
    resumed = [
        element[0]["inputs"].numpy().tolist() for element in batches(stream.position(25)).dataset().take(35)
    ]
    assert resumed == expected[25:]
    other = batches(stream.position(25), "news=news:1,talks=talks:1")
    assert "mixture=news:1,talks:1 instead of news:1,talks:3" in other.note


def test_the_last_chunk_of_an_epoch_may_round_to_no_example(corpora):
    write_corpus(corpora / "talks", train=61, dev=10)
    made, _ = generated("news=news:1,talks=talks:1", vocab_size=330)
    stream = TrainingBatches(made.shards("train", "data"), HPARAMS, seed=3, chunk=360)
    examples = [len(element[1]) for element in stream.dataset().take(150)]
    assert sum(examples) > 2 * 361  # two epochs and more


def test_a_mixture_is_refused_where_references_are_not_the_targets(corpora):
    with pytest.raises(T2TError, match="parse_wsj takes one source, not several corpora"):
        registry.problem("parse_wsj", data_source="a=sample,b=sample").generate_data("data")
