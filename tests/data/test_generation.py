"""Generation of data: shards, metadata and vocabulary from a corpus of lines."""

import os

import pytest

from t2t_revival.data import examples, generation, records, workers
from t2t_revival.data.generation import generate
from t2t_revival.data.metadata import Metadata, metadata_path
from t2t_revival.data.sources import source
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.errors import T2TError
from tests.support.line_corpus import data_spec, sentences, snapshot, write_corpus


def test_shards_hold_the_whole_corpus(corpus, tmp_path):
    metadata = generate(data_spec(corpus), tmp_path / "data", None, None)
    vocabulary = Vocabulary(tmp_path / "data" / metadata.vocab_file)
    train = list(examples.read(records.shard_paths(tmp_path / "data", "p", "train")))
    dev = list(examples.read(records.shard_paths(tmp_path / "data", "p", "dev")))

    def text(pairs):
        return [tuple(vocabulary.decode(ids) for ids in pair) for pair in pairs]

    assert sorted(text(train)) == sorted(sentences(300, seed="train"))
    assert text(train) != list(sentences(300, seed="train"))  # shuffled inside the shards
    assert text(dev) == list(sentences(20, seed="dev"))
    assert all(ids[-1] == 1 and 1 not in ids[:-1] for example in train for ids in example)


def test_file_names_and_metadata(corpus, tmp_path):
    data = tmp_path / "data"
    metadata = generate(data_spec(corpus), data, None, None)
    assert sorted(snapshot(data)) == sorted(
        ["p-dev-00000-of-00001", "p.meta.json", "vocab.p.330.spm"]
        + [f"p-train-{index:05}-of-00010" for index in range(10)]
    )
    assert [path.name for path in data.iterdir() if path.is_dir()] == []
    assert metadata == Metadata.load(metadata_path(data, "p"))
    assert (metadata.source, metadata.source_lang, metadata.target_lang) == (str(corpus), "en", "de")
    assert (metadata.vocab_file, metadata.vocab_size) == ("vocab.p.330.spm", 330)
    train = metadata.splits["train"]
    pairs = list(examples.read(records.shard_paths(data, "p", "train")))
    assert train.examples == sum(train.lengths.values()) == 300
    assert train.shards == 10
    assert train.source_tokens == sum(len(inputs) for inputs, _ in pairs)
    assert train.target_tokens == sum(len(targets) for _, targets in pairs)
    assert max(train.lengths) == max(max(map(len, pair)) for pair in pairs)


def test_pairs_with_an_empty_side_are_skipped_and_counted(corpus, tmp_path):
    lines = (corpus / "dev.en").read_text().splitlines()
    lines[3], lines[5] = "", " \u00a0\t"
    (corpus / "dev.en").write_text("\n".join(lines) + "\n")
    metadata = generate(data_spec(corpus), tmp_path / "data", None, None)
    assert (metadata.splits["dev"].examples, metadata.splits["dev"].skipped) == (18, 2)


def test_a_split_without_a_whole_pair_is_an_error(corpus, tmp_path):
    (corpus / "dev.de").write_text("\n" * 20)
    with pytest.raises(T2TError, match="every pair of dev has an empty side"):
        generate(data_spec(corpus), tmp_path / "data", None, None)
    assert not metadata_path(tmp_path / "data", "p").exists()


def test_many_processes_make_what_one_makes(corpus, tmp_path, monkeypatch):
    generate(data_spec(corpus), tmp_path / "one", None, None)
    monkeypatch.setattr(workers, "PAIRS_PER_WORKER", 100)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    calls = []
    generate(data_spec(corpus), tmp_path / "many", None, lambda *call: calls.append(call))
    assert snapshot(tmp_path / "many") == snapshot(tmp_path / "one")
    assert [call for call in calls if call[0] == "pairs"][-1] == ("pairs", 320, 320)


@pytest.mark.parametrize("name", ["../p", "a/b", "..", ""])
def test_files_stay_in_data_dir(corpus, tmp_path, name):
    with pytest.raises(T2TError, match="not a valid file name"):
        generate(data_spec(corpus, name=name), tmp_path / "data", None, None)
    assert not (tmp_path / "data").exists()


def test_a_vocabulary_too_large_for_the_text_is_an_error_only_if_asked_for(corpus, tmp_path):
    with pytest.raises(T2TError, match=r"--vocab_size=9000: .* --vocab_size=\d+ or less"):
        generate(data_spec(corpus, vocab_size=9000), tmp_path / "data", None, None)
    made = generate(data_spec(corpus, vocab_size=0), tmp_path / "other", None, None)
    assert 330 < made.vocab_size < 9000
    assert made.vocab_file == f"vocab.p.{made.vocab_size}.spm"


def test_a_failed_vocabulary_binds_the_data_dir_to_nothing(corpus, tmp_path):
    with pytest.raises(T2TError, match="--vocab_size=9000"):
        generate(data_spec(corpus, vocab_size=9000), tmp_path / "data", None, None)
    other = write_corpus(tmp_path / "other")
    made = generate(data_spec(other), tmp_path / "data", None, None)
    assert (made.source, made.vocab_size) == (str(other), 330)


def test_a_vocabulary_that_someone_has_put_there_is_used(corpus, tmp_path):
    theirs = Vocabulary.train((two for _, two in sentences(50)), tmp_path / "vocab.p.330.spm", 330)
    assert generate(data_spec(corpus), tmp_path, None, None).vocab_fingerprint == theirs.fingerprint


def test_a_given_vocabulary_is_used(corpus, subwords_file, tmp_path):
    asked = data_spec(corpus, vocab_size=0, vocab_file=subwords_file)
    metadata = generate(asked, tmp_path / "data", None, None)
    vocabulary = SubwordVocabulary(subwords_file)
    assert metadata.vocab_file == subwords_file.name
    assert metadata.vocab_fingerprint == vocabulary.fingerprint
    dev = list(examples.read(records.shard_paths(tmp_path / "data", "p", "dev")))
    lines = [line for line, _ in source(str(corpus), "en", "de").pairs("dev", 0, len(dev))]
    assert [list(inputs) for inputs, _ in dev] == [[*vocabulary.encode(line), 1] for line in lines]
    assert generate(asked, tmp_path / "data", None, None) == metadata


def test_a_data_dir_that_cannot_be_made_is_named(corpus, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(T2TError, match=r"--data_dir=.*file/data: cannot be created"):
        generate(data_spec(corpus), tmp_path / "file" / "data", None, None)


def test_a_data_dir_that_cannot_be_written_is_named(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(T2TError, match=r"--data_dir=.*data: not writable"):
        generate(data_spec(corpus), tmp_path / "data", None, None)


def test_two_at_once_are_refused(corpus, tmp_path):
    def second(stage, done, total):
        generate(data_spec(corpus), tmp_path / "data", None, None)

    with pytest.raises(T2TError, match="another process is generating data there"):
        generate(data_spec(corpus), tmp_path / "data", None, second)


@pytest.mark.parametrize(("pairs", "shards"), [(4, 10), (999_999, 10), (1_000_000, 100)])
def test_shards_cut_the_pairs_without_gap_or_overlap(pairs, shards):
    plan = Metadata("p", "s", "en", "de", {"train": pairs, "dev": 7})
    train = [task for task in generation.shard_tasks(plan) if task.split == "train"]
    assert len(train) == shards
    assert [task.stop for task in train[:-1]] == [task.start for task in train[1:]]
    assert (train[0].start, train[-1].stop) == (0, pairs)
    assert [(task.start, task.stop) for task in generation.shard_tasks(plan) if task.split == "dev"] == [
        (0, 7)
    ]
