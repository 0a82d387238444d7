"""Generation of cleaned data: vocabulary and shards, resumed, repaired, by many processes and by Beam."""

import json
import signal
import subprocess
import sys
import textwrap

import pytest

from t2t_revival.data import examples, records, workers
from t2t_revival.data.generation import generate
from t2t_revival.data.metadata import Metadata, metadata_path
from t2t_revival.errors import T2TError
from tests.support.line_corpus import data_spec, flip, interrupt_at, sentences, snapshot, write_corpus

FAULTY = [("same", "same"), ("", "leer"), ("12 34", "zwölf"), ("CafÃ©", "Lokal"), *sentences(3, seed="train")]
DROPPED = {"empty side": 1, "broken text": 1, "equal sides": 1, "few letters": 1, "duplicate": 3}


@pytest.fixture
def corpus(tmp_path):
    """A corpus with faulty pairs in the middle and at the end of train, and at the end of dev."""
    folder = write_corpus(tmp_path / "corpus")
    for side, language in enumerate(("en", "de")):
        lines = (folder / f"train.{language}").read_text(encoding="utf-8").splitlines()
        faulty = [pair[side] for pair in FAULTY]
        lines = [*lines[:150], *faulty[:3], *lines[150:], *faulty[3:]]
        (folder / f"train.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        with (folder / f"dev.{language}").open("a", encoding="utf-8") as dev:
            dev.writelines(f"{line}\n" for line in faulty)
    return folder


def cleaned(corpus, data, *more, clean=True):
    return generate(data_spec(corpus, clean=clean), data, None, *(more or (None,)))


def train_examples(data):
    return sorted(examples.read(records.shard_paths(data, "p", "train")))


def test_data_is_that_of_the_corpus_without_faulty_pairs(corpus, tmp_path):
    made = cleaned(corpus, tmp_path / "data")
    good = generate(data_spec(write_corpus(tmp_path / "good")), tmp_path / "good_data", None, None)
    assert made.vocab_fingerprint == good.vocab_fingerprint, "learned from the cleaned pairs"
    assert train_examples(tmp_path / "data") == train_examples(tmp_path / "good_data")
    train, dev = made.splits["train"], made.splits["dev"]
    assert (train.examples, train.skipped, train.cleaned) == (300, 0, DROPPED)
    assert (dev.examples, dev.skipped, dev.cleaned) == (26, 1, {})
    assert made.pairs == {"train": 307, "dev": 27}
    assert made.clean
    assert Metadata.load(metadata_path(tmp_path / "data", "p")) == made
    rules = [line.split("\t")[0] for line in (tmp_path / "data" / "p.cleaned.txt").read_text().splitlines()]
    assert rules == [rule for rule, count in DROPPED.items() for _ in range(count)]
    assert not list((tmp_path / "data").glob(".*"))


def test_without_cleaning_nothing_changes(corpus, tmp_path):
    made = cleaned(corpus, tmp_path / "data", clean=None)
    assert not made.clean
    assert (made.splits["train"].examples, made.splits["train"].skipped) == (306, 1)
    assert made.splits["train"].cleaned == {}
    assert not (tmp_path / "data" / "p.cleaned.txt").exists()
    assert cleaned(corpus, tmp_path / "other", clean=False) == made


def test_metadata_of_an_older_version_is_that_of_uncleaned_data(corpus, tmp_path):
    made = cleaned(corpus, tmp_path / "data", clean=None)
    path = metadata_path(tmp_path / "data", "p")
    values = json.loads(path.read_text())
    for counts in values["splits"].values():
        assert counts.pop("cleaned") == {}
    for name in ("checksum", "clean", "weighted", "corpora", "tags"):
        del values[name]
    path.write_text(json.dumps(values))
    assert Metadata.load(path) == made


def test_many_processes_make_what_one_makes(corpus, tmp_path, monkeypatch):
    cleaned(corpus, tmp_path / "one")
    monkeypatch.setattr(workers, "PAIRS_PER_WORKER", 100)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    cleaned(corpus, tmp_path / "many")
    assert snapshot(tmp_path / "many") == snapshot(tmp_path / "one")


@pytest.mark.slow
def test_beam_makes_what_this_machine_makes(corpus, tmp_path, monkeypatch):
    beam = pytest.importorskip(
        "t2t_revival.data.beam", reason='Apache Beam is not installed: pip install ".[beam]"'
    )
    monkeypatch.chdir(tmp_path)  # a folder named from here is found by workers elsewhere
    cleaned(corpus, tmp_path / "here")
    generate(
        data_spec(corpus, clean=True),
        (tmp_path / "there").relative_to(tmp_path),
        None,
        None,
        beam.BeamShardRunner("DirectRunner"),
    )
    assert snapshot(tmp_path / "there") == snapshot(tmp_path / "here")


@pytest.mark.parametrize(
    ("stage", "pairs"), [("cleaning", 0), ("pairs", 307), ("vocabulary", 0), ("pairs", 310)]
)
def test_after_an_interruption_the_rest_is_made(stage, pairs, corpus, tmp_path):
    whole, data = tmp_path / "whole", tmp_path / "data"
    cleaned(corpus, whole)
    with pytest.raises(KeyboardInterrupt):
        cleaned(corpus, data, interrupt_at(stage, pairs))
    assert data.exists() == (pairs > 307), "before the plan is written, nothing is kept"
    again = []
    cleaned(corpus, data, lambda stage, done, total: again.append(stage))
    assert ("cleaning" in again) == (pairs <= 307)
    assert snapshot(data) == snapshot(whole)


def test_a_resumed_generation_is_cleaned_without_being_asked(corpus, tmp_path):
    cleaned(corpus, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        cleaned(corpus, tmp_path / "data", interrupt_at("pairs", 310))
    with pytest.raises(T2TError, match="holds p made with --clean, not without it"):
        cleaned(corpus, tmp_path / "data", clean=False)
    cleaned(corpus, tmp_path / "data", clean=None)
    assert snapshot(tmp_path / "data") == snapshot(tmp_path / "whole")


def test_rules_that_a_killed_generation_of_another_corpus_left_are_not_used(corpus, tmp_path):
    data, other = tmp_path / "data", write_corpus(tmp_path / "other", train=307)
    script = textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        from t2t_revival.data.generation import generate
        from tests.support.line_corpus import data_spec

        def progress(stage, done, total):
            if stage == "vocabulary":
                os.kill(os.getpid(), signal.SIGKILL)

        generate(data_spec({str(other)!r}, clean=True), Path({str(data)!r}), None, progress)
    """)
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (data / ".p.unfinished" / "train.rules").is_file()
    assert cleaned(corpus, data).splits["train"].cleaned == DROPPED


@pytest.mark.parametrize(
    "harm", [lambda path: path.unlink(), lambda path: path.write_bytes(flip(path.read_bytes()))]
)
@pytest.mark.parametrize(
    ("shard", "read"), [("p-train-00005-of-00010", True), ("p-dev-00000-of-00001", False)]
)
def test_a_lost_or_corrupt_shard_is_made_again(harm, shard, read, corpus, tmp_path):
    data = tmp_path / "data"
    cleaned(corpus, data)
    before = snapshot(data)
    harm(data / shard)
    stages = []
    cleaned(corpus, data, lambda stage, done, total: stages.append(stage), clean=None)
    assert snapshot(data) == before
    assert ("cleaning" in stages) == read, "train alone is cleaned"


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [(True, False, "with --clean, not without it"), (None, True, "without --clean, not with it")],
)
def test_cleaned_and_uncleaned_data_are_not_mixed(first, then, message, corpus, tmp_path):
    cleaned(corpus, tmp_path / "data", clean=first)
    before = snapshot(tmp_path / "data")
    with pytest.raises(T2TError, match=rf"data holds p made {message}; give another --data_dir"):
        cleaned(corpus, tmp_path / "data", clean=then)
    assert snapshot(tmp_path / "data") == before


def test_a_corpus_of_faulty_pairs_binds_the_data_dir_to_nothing(corpus, tmp_path):
    for language in ("en", "de"):
        (corpus / f"train.{language}").write_text("same\n" * 9)
    with pytest.raises(T2TError, match=r"--clean drops all pairs of train \(equal sides 9\)"):
        cleaned(corpus, tmp_path / "data")
    assert not (tmp_path / "data").exists()
