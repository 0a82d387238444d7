import dataclasses
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import textwrap

import pytest

from t2t_revival.data import examples, generation, records, workers
from t2t_revival.data.generation import generate
from t2t_revival.data.metadata import DataSpec, Metadata, metadata_path
from t2t_revival.data.sources import source
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.errors import T2TError

NOUNS = ("dog", "cat", "house", "tree", "garden", "river", "child", "teacher", "window", "street")


def sentences(count, seed=0):
    draw = random.Random(seed)
    for number in range(count):
        one, two = draw.choice(NOUNS), draw.choice(NOUNS)
        yield f"the {one} number {number} sees a {two}", f"das {one}chen Nummer {number} sieht ein {two}lein"


def write_corpus(folder, train=300, dev=20):
    folder.mkdir(exist_ok=True)
    for split, count in (("train", train), ("dev", dev)):
        for side, language in enumerate(("en", "de")):
            lines = "".join(pair[side] + "\n" for pair in sentences(count, seed=split))
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus")


def data_spec(corpus, **changes):
    def make_source(name, tmp_dir):
        return source(name, "en", "de", tmp_dir=tmp_dir)

    made = DataSpec("p", str(corpus), "sample", make_source, 330, lambda _: 50_000, lambda _: ())
    return dataclasses.replace(made, **changes)


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


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


def interrupt_at(stage, pairs):
    def progress(now, done, total):
        if now == stage and done >= pairs:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize(("stage", "pairs"), [("reading", 0), ("vocabulary", 0), ("pairs", 0), ("pairs", 90)])
def test_after_an_interruption_the_rest_is_made_and_nothing_twice(corpus, tmp_path, stage, pairs):
    whole, data = tmp_path / "whole", tmp_path / "data"
    generate(data_spec(corpus), whole, None, None)
    with pytest.raises(KeyboardInterrupt):
        generate(data_spec(corpus), data, None, interrupt_at(stage, pairs))
    assert not list(data.glob(".*.tmp"))
    kept = {path: path.stat().st_mtime_ns for path in data.glob("p-train-*")}
    assert len(kept) == pairs // 30
    generate(data_spec(corpus), data, None, None)
    assert snapshot(data) == snapshot(whole)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_ctrl_c_ends_the_pool_and_leaves_no_temporary_file(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "PAIRS_PER_WORKER", 100)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    with pytest.raises(KeyboardInterrupt):
        generate(data_spec(corpus), tmp_path / "data", None, interrupt_at("pairs", 1))
    assert multiprocessing.active_children() == []
    assert not list((tmp_path / "data").glob(".*.tmp"))
    metadata = generate(data_spec(corpus), tmp_path / "data", None, None)
    assert metadata.splits["train"].examples == 300


def test_after_kill_9_the_rest_is_made(tmp_path):
    corpus, data = write_corpus(tmp_path / "corpus"), tmp_path / "data"
    script = tmp_path / "killed.py"
    script.write_text(
        textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        from t2t_revival.data import generation, workers
        from t2t_revival.data.metadata import DataSpec
        from t2t_revival.data.sources import source

        def progress(stage, done, total):
            if done > 60:
                Path({str(data)!r}, ".p-train-00009-of-00010.tmp").write_bytes(b"half")
                os.kill(os.getpid(), signal.SIGKILL)

        if __name__ == "__main__":
            workers.PAIRS_PER_WORKER = 100
            workers.cores = lambda: 2
            workers.POLL_SECONDS = 0.001
            make = lambda name, tmp_dir: source(name, "en", "de", tmp_dir=tmp_dir)
            spec = DataSpec("p", {str(corpus)!r}, "sample", make, 330, lambda _: 330, lambda _: ())
            generation.generate(spec, Path({str(data)!r}), None, progress)
        """)
    )
    killed = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not metadata_path(data, "p").exists()
    generate(data_spec(corpus), data, None, None)
    generate(data_spec(corpus), tmp_path / "whole", None, None)
    assert snapshot(data) == snapshot(tmp_path / "whole")


def test_complete_data_is_left_alone_and_needs_no_source(corpus, tmp_path):
    made = generate(data_spec(corpus), tmp_path / "data", None, None)
    for file in corpus.iterdir():
        file.unlink()
    assert generate(data_spec(corpus), tmp_path / "data", None, None) == made
    assert generate(data_spec(corpus, data_source=None, vocab_size=0), tmp_path / "data", None, None) == made


@pytest.mark.parametrize("lost", ["p-train-00003-of-00010", "vocab.p.330.spm"])
def test_a_lost_file_is_made_again(corpus, tmp_path, lost):
    data = tmp_path / "data"
    generate(data_spec(corpus), data, None, None)
    before = snapshot(data)
    (data / lost).unlink()
    generate(data_spec(corpus, vocab_size=0), data, None, None)
    assert snapshot(data) == before


def flip(content):
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


DAMAGES = {
    "flipped": (flip, r"truncated or corrupt at byte \d+"),
    "cut": (lambda content: content[:-3], r"truncated or corrupt at byte \d+"),
    "appended": (lambda content: content + b"x", r"truncated or corrupt at byte \d+"),
    "without records": (lambda content: b"", r"0 bytes instead of \d+"),
}


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_corrupt_shard_is_made_again_and_no_other(corpus, tmp_path, damage, finished):
    whole, data = tmp_path / "whole", tmp_path / "data"
    generate(data_spec(corpus), whole, None, None)
    if finished:
        generate(data_spec(corpus), data, None, None)
    else:
        with pytest.raises(KeyboardInterrupt):
            generate(data_spec(corpus), data, None, interrupt_at("pairs", 150))
    change, message = DAMAGES[damage]
    shard = data / "p-train-00003-of-00010"
    shard.write_bytes(change(shard.read_bytes()))
    kept = {path: path.stat().st_mtime_ns for path in data.glob("p-train-*") if path != shard}
    stages = []
    generate(data_spec(corpus), data, None, lambda stage, done, total: stages.append(stage))
    assert snapshot(data) == snapshot(whole)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    (message_line,) = (stage for stage in stages if stage.startswith("making"))
    assert re.fullmatch(rf"making p-train-00003-of-00010 again: {message}", message_line)
    stages.clear()
    generate(data_spec(corpus), data, None, lambda stage, done, total: stages.append(stage))
    assert stages == ["verifying"]


def test_a_shard_that_would_come_out_otherwise_is_an_error(corpus, tmp_path):
    generate(data_spec(corpus), tmp_path / "data", None, None)
    shard = tmp_path / "data" / "p-dev-00000-of-00001"
    shard.write_bytes(shard.read_bytes()[:-1])
    (corpus / "dev.en").write_text("another line\n" * 20)
    with pytest.raises(
        T2TError, match=f"{shard}: made again, and different from before: {corpus} has changed"
    ):
        generate(data_spec(corpus), tmp_path / "data", None, None)


def test_a_corrupt_vocabulary_is_named(corpus, tmp_path):
    data = tmp_path / "data"
    generate(data_spec(corpus), data, None, None)
    path = data / "vocab.p.330.spm"
    path.write_bytes(flip(path.read_bytes()))
    with pytest.raises(T2TError, match=f"{path}: not the vocabulary that"):
        generate(data_spec(corpus), data, None, None)


@pytest.mark.parametrize("name", ["../p", "a/b", "..", ""])
def test_files_stay_in_data_dir(corpus, tmp_path, name):
    with pytest.raises(T2TError, match="not a valid file name"):
        generate(data_spec(corpus, name=name), tmp_path / "data", None, None)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("finished", [True, False])
def test_another_source_or_vocabulary_in_the_same_data_dir_is_refused(corpus, tmp_path, finished):
    data, other = tmp_path / "data", write_corpus(tmp_path / "other")
    if finished:
        generate(data_spec(corpus), data, None, None)
    else:
        with pytest.raises(KeyboardInterrupt):
            generate(data_spec(corpus), data, None, interrupt_at("pairs", 90))
    before = snapshot(data)
    with pytest.raises(T2TError, match=rf"made from {corpus}, not from {other}; give another --data_dir"):
        generate(data_spec(other), data, None, None)
    with pytest.raises(T2TError, match=r"made with --vocab_size=330, not 340; give another --data_dir"):
        generate(data_spec(corpus, vocab_size=340), data, None, None)
    assert snapshot(data) == before


def test_a_corpus_that_changed_after_the_run_began_is_refused(corpus, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        generate(data_spec(corpus), tmp_path / "data", None, interrupt_at("pairs", 90))
    write_corpus(corpus, train=301)
    with pytest.raises(T2TError, match="has changed since"):
        generate(data_spec(corpus), tmp_path / "data", None, None)


def test_an_unfinished_run_goes_on_with_its_source_where_none_is_given(corpus, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        generate(data_spec(corpus), tmp_path / "data", None, interrupt_at("pairs", 0))
    made = generate(data_spec(corpus, data_source=None, vocab_size=0), tmp_path / "data", None, None)
    assert (made.source, made.vocab_size) == (str(corpus), 330)


def test_a_vocabulary_exchanged_on_the_way_is_refused(corpus, tmp_path):
    data = tmp_path / "data"
    with pytest.raises(KeyboardInterrupt):
        generate(data_spec(corpus), data, None, interrupt_at("pairs", 90))
    Vocabulary.train((one for one, _ in sentences(50)), data / "vocab.p.330.spm", 330)
    with pytest.raises(T2TError, match=r"vocab\.p\.330\.spm: not the vocabulary that"):
        generate(data_spec(corpus), data, None, None)


def test_shards_of_unknown_origin_are_not_touched(corpus, tmp_path):
    (tmp_path / "p-train-00000-of-00100").write_bytes(b"theirs")
    with pytest.raises(T2TError, match=r"p-train-00000-of-00100 without p\.meta\.json"):
        generate(data_spec(corpus), tmp_path, None, None)
    assert (tmp_path / "p-train-00000-of-00100").read_bytes() == b"theirs"


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


def test_a_vocabulary_other_than_the_one_there_is_refused(corpus, subwords_file, tmp_path):
    generate(data_spec(corpus), tmp_path / "data", None, None)
    with pytest.raises(T2TError, match=rf"made with vocab\.p\.330\.spm, not with .*{subwords_file.name}"):
        generate(data_spec(corpus, vocab_file=subwords_file), tmp_path / "data", None, None)


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
