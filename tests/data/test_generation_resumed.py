"""Generation in a data_dir that holds something: unfinished, complete, lost, corrupt or other data."""

import dataclasses
import multiprocessing
import re
import signal
import subprocess
import sys
import textwrap

import pytest

from t2t_revival.data import workers
from t2t_revival.data.generation import generate
from t2t_revival.data.metadata import Metadata, metadata_path
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.errors import HungUp, T2TError, Terminated
from t2t_revival.utils.signals import terminable
from tests.support.line_corpus import data_spec, flip, interrupt_at, sentences, snapshot, write_corpus


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


@pytest.mark.parametrize(
    ("number", "kind"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated), (signal.SIGHUP, HungUp)],
)
def test_signals_while_the_pool_holds_its_locks_do_not_block_it_for_ever(
    corpus, tmp_path, monkeypatch, request, number, kind
):
    interrupted = []

    def wait_interrupted(pending, *arguments):
        if not interrupted:
            interrupted.append(True)
            for future in pending:
                future._condition.acquire()  # as concurrent.futures.wait does
            signal.raise_signal(number)
            for future in pending:
                future._condition.release()
        return wait(pending, *arguments)

    wait = workers.wait
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, usual)  # a job in the background ignores it
    request.addfinalizer(lambda: signal.signal(number, before))
    monkeypatch.setattr(workers, "wait", wait_interrupted)
    monkeypatch.setattr(workers, "PAIRS_PER_WORKER", 100)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    with pytest.raises(kind), terminable():
        generate(data_spec(corpus), tmp_path / "data", None, None)
    assert interrupted
    assert multiprocessing.active_children() == []


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
    path = metadata_path(tmp_path / "data", "p")
    dataclasses.replace(Metadata.load(path), origins=None).save(path)  # data of an earlier version
    (corpus / "dev.en").write_text("another line\n" * 20)
    with pytest.raises(
        T2TError, match=f"{shard}: made again, it differs from before, so {corpus} has changed"
    ):
        generate(data_spec(corpus), tmp_path / "data", None, None)


def test_a_corrupt_vocabulary_is_named(corpus, tmp_path):
    data = tmp_path / "data"
    generate(data_spec(corpus), data, None, None)
    path = data / "vocab.p.330.spm"
    path.write_bytes(flip(path.read_bytes()))
    with pytest.raises(T2TError, match=f"{path}: not the vocabulary that"):
        generate(data_spec(corpus), data, None, None)


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


def test_a_vocabulary_other_than_the_one_there_is_refused(corpus, subwords_file, tmp_path):
    generate(data_spec(corpus), tmp_path / "data", None, None)
    with pytest.raises(T2TError, match=rf"made with vocab\.p\.330\.spm, not with .*{subwords_file.name}"):
        generate(data_spec(corpus, vocab_file=subwords_file), tmp_path / "data", None, None)
