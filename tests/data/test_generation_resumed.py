"""Generation in a data_dir that holds something: unfinished, complete, lost, corrupt or other data."""

import contextlib
import json
import multiprocessing
import re
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

from t2t_revival import T2TError, registry
from t2t_revival.data import workers
from t2t_revival.errors import HungUp, Terminated
from t2t_revival.utils.signals import terminable
from tests.support.data_kinds import KINDS, open_problem
from tests.support.line_corpus import flip, interrupt_at, snapshot, translation, write_corpus

MIXTURES = ["mixture", "languages"]
KINDS_OF_FILES = ["plain", "cleaned", "separate", "weighted", "aligned", "trees", *MIXTURES]


def made_at(files):
    return {path: path.stat().st_mtime_ns for path in files}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_everywhere_it_makes_the_same_and_nothing_twice(kind, sources, whole, tmp_path):
    """Each start is interrupted at the first stage, or among shards, where none before it was."""
    data, points = tmp_path / "data", []

    def progress(stage, done, total):
        point = (corpora[-1:], stage, bool(done))
        if stage.startswith("corpus"):
            corpora.append(stage)
        if point not in points:
            points.append(point)
            raise KeyboardInterrupt

    corpora, finished, shards = [], False, {}
    while not finished:
        with contextlib.suppress(KeyboardInterrupt):
            corpora.clear()
            open_problem(KINDS[kind], sources).generate_data(data, progress=progress)
            finished = True
        begun = any(stage == "pairs" for _, stage, done in points if not done)
        assert begun or not data.exists() or KINDS[kind].vocab_files or corpora, (
            "an early failure keeps nothing"
        )
        assert not list(data.glob(".*.tmp"))
        assert shards.items() <= made_at(data.glob("*-train-*")).items()
        shards = made_at(data.glob("*-train-*"))
    assert len(points) >= 3
    assert snapshot(data) == whole(kind)
    assert not list(data.glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("subwords", "two given")])
@pytest.mark.usefixtures("two_processes")
def test_many_processes_make_what_one_makes(kind, sources, whole, tmp_path):
    calls = []
    metadata = open_problem(KINDS[kind], sources).generate_data(
        tmp_path / "data", progress=lambda *call: calls.append(call)
    )
    assert snapshot(tmp_path / "data") == whole(kind)
    if not metadata.corpora:
        total = sum(metadata.pairs.values())
        assert [call for call in calls if call[0] == "pairs"][-1] == ("pairs", total, total)


def interrupt_with(shards, data):
    def progress(stage, done, total):
        if len(list(data.glob("*-train-*"))) >= shards:
            raise KeyboardInterrupt

    return progress


DAMAGES = {  # by index of a shard
    2: (lambda content: None, ""),
    3: (flip, r"truncated or corrupt at byte \d+"),
    4: (lambda content: content[:-3], r"truncated or corrupt at byte \d+"),
    5: (lambda content: content + b"x", r"truncated or corrupt at byte \d+"),
    6: (lambda content: b"", r"0 bytes instead of \d+"),
}


def damage(data):
    """Loses, cuts or changes five shards of train; returns their paths and the lines that are due."""
    shards, lines = {}, []
    for index, (change, message) in DAMAGES.items():
        shard = sorted(data.glob(f"*-train-{index:05}-of-00010"))[0]
        shards[shard] = change(shard.read_bytes())
        shard.unlink()
        if shards[shard] is not None:
            shard.write_bytes(shards[shard])
            lines.append(f"making {shard.name} again: {message}")
    return list(shards), lines


@pytest.mark.slow
@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("kind", KINDS_OF_FILES)
def test_lost_and_corrupt_files_are_made_again_and_no_others(kind, finished, sources, whole, tmp_path):
    data = tmp_path / "data"
    problem, stages = open_problem(KINDS[kind], sources), []
    if finished:
        problem.generate_data(data)
        for path in (*data.glob("vocab.*.spm"), *data.glob("*.references")):
            path.unlink()
    else:
        with pytest.raises(KeyboardInterrupt):
            problem.generate_data(data, progress=interrupt_with(8, data))
    shards, lines = damage(data)
    kept = made_at(path for path in data.glob("*-train-*") if path not in shards)
    begun_mixture = kind in MIXTURES and not finished  # whose list is not stored yet
    asked = problem.config.data_source if begun_mixture else None
    again = registry.problem(KINDS[kind].problem, data_source=asked)
    again.generate_data(data, progress=lambda stage, done, total: stages.append(stage))
    assert snapshot(data) == whole(kind)
    assert kept.items() <= made_at(data.glob("*-train-*")).items()
    said = [stage for stage in stages if stage.startswith("making")]
    assert len(said) == len(lines)
    assert all(map(re.fullmatch, lines, said))
    stages.clear()
    again.generate_data(data, progress=lambda stage, done, total: stages.append(stage))
    assert set(stages) == {"verifying"}


def test_a_lost_shard_of_dev_is_made_without_cleaning_train(sources, whole, tmp_path):
    data, stages = tmp_path / "data", []
    problem = open_problem(KINDS["cleaned"], sources)
    problem.generate_data(data)
    (data / "translate_ende-dev-00000-of-00001").unlink()
    problem.generate_data(data, progress=lambda stage, done, total: stages.append(stage))
    assert snapshot(data) == whole("cleaned")
    assert "cleaning" not in stages


@pytest.mark.usefixtures("two_processes")
def test_ctrl_c_ends_the_pool_and_leaves_no_temporary_file(corpus, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        translation(corpus).generate_data(tmp_path / "data", progress=interrupt_at("pairs", 1))
    assert multiprocessing.active_children() == []
    assert not list((tmp_path / "data").glob(".*.tmp"))
    assert translation(corpus).generate_data(tmp_path / "data").splits["train"].examples == 300


@pytest.mark.usefixtures("two_processes")
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
    with pytest.raises(kind), terminable():
        translation(corpus).generate_data(tmp_path / "data")
    assert interrupted
    assert multiprocessing.active_children() == []


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["vocabulary", "pairs"])
def test_after_kill_9_the_rest_is_made(stage, sources, whole, tmp_path):
    """Rules of --clean that a killed generation of another corpus has left are not used."""
    data, other = tmp_path / "data", write_corpus(tmp_path / "other", train=247)
    corpus = str(other if stage == "vocabulary" else sources / "news")
    script = tmp_path / "killed.py"
    script.write_text(
        textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        from t2t_revival import registry
        from t2t_revival.data import workers

        def progress(stage, done, total):
            if stage == {stage!r} and done >= ({stage!r} == "pairs") and data.exists():
                (data / ".translate_ende-train-00009-of-00010.tmp").write_bytes(b"half")
                os.kill(os.getpid(), signal.SIGKILL)

        if __name__ == "__main__":
            workers.PAIRS_PER_WORKER, workers.POLL_SECONDS, workers.cores = 20, 0.001, lambda: 2
            data = Path({str(data)!r})
            problem = registry.problem("translate_ende", data_source={corpus!r}, vocab_size=330, clean=True)
            problem.generate_data(data, progress=progress)
        """)
    )
    killed = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not list(data.glob("*.meta.json"))
    assert list(data.glob(".*.tmp"))
    open_problem(KINDS["cleaned"], sources).generate_data(data)
    assert snapshot(data) == whole("cleaned")
    assert not list(data.glob(".*"))


def test_complete_data_is_left_alone_and_needs_no_source(corpus, tmp_path):
    made = translation(corpus).generate_data(tmp_path / "data")
    shutil.rmtree(corpus)
    assert translation(corpus).generate_data(tmp_path / "data") == made
    assert translation(None, vocab_size=0).generate_data(tmp_path / "data") == made


def test_a_shard_that_would_come_out_otherwise_is_an_error(corpus, tmp_path):
    translation(corpus).generate_data(tmp_path)
    shard, meta = tmp_path / "translate_ende-dev-00000-of-00001", tmp_path / "translate_ende.meta.json"
    shard.write_bytes(shard.read_bytes()[:-1])
    recorded = json.loads(meta.read_text())
    recorded["origins"]["files"] = {}  # as of a source that has none
    del recorded["checksum"]
    meta.write_text(json.dumps(recorded))
    (corpus / "dev.en").write_text("another line\n" * 20)
    with pytest.raises(
        T2TError, match=f"{shard}: made again, it differs from before, so {corpus} has changed"
    ):
        translation(corpus).generate_data(tmp_path)


def test_an_unfinished_generation_goes_on_as_it_was_begun(sources, whole, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        open_problem(KINDS["cleaned"], sources).generate_data(tmp_path, progress=interrupt_with(1, tmp_path))
    with pytest.raises(KeyboardInterrupt):
        translation(None, vocab_size=0).generate_data(tmp_path, progress=interrupt_with(5, tmp_path))
    translation(None, vocab_size=0).generate_data(tmp_path)
    assert snapshot(tmp_path) == whole("cleaned")


OTHER = {  # than a plain data_dir, and what is said
    "source": (
        {"corpus": "other"},
        r"made with data_source=.*/corpus, not .*/other: give another --data_dir",
    ),
    "size": ({"vocab_size": 340}, "made with vocab_size=330, not 340: give another --data_dir"),
    "vocabulary": (
        {"vocab_file": "given"},
        r"made with vocab_file=vocab\.translate_ende\.330\.spm, not .*subwords",
    ),
    "cleaning": ({"clean": True}, "made with clean=False, not True: give another"),
    "alignments": ({"make_alignments": True}, "made with make_alignments=False, not True"),
    "vocabularies": ({"separate_vocabularies": True}, "made with separate_vocabularies=False, not True"),
    "mixture": ({"corpus": "news=corpus:1"}, "which is no mixture: give another --data_dir"),
}


@pytest.mark.parametrize("finished", [True, False])
def test_other_data_in_the_same_data_dir_is_refused(corpus, subwords_file, tmp_path, monkeypatch, finished):
    data = tmp_path / "data"
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "other")
    with contextlib.nullcontext() if finished else pytest.raises(KeyboardInterrupt):
        translation(corpus).generate_data(data, progress=None if finished else interrupt_at("pairs", 90))
    before = snapshot(data)
    for name, (changes, message) in OTHER.items():
        if "vocab_file" in changes:
            changes = {"vocab_file": subwords_file, "vocab_size": 0}
        if "mixture" in name and not finished:
            continue
        settings = {"corpus": "corpus", **changes}
        with pytest.raises(T2TError, match=message):
            translation(**settings).generate_data(data)
    assert snapshot(data) == before


@pytest.mark.parametrize("finished", [True, False])
def test_a_vocabulary_exchanged_on_the_way_is_refused(corpus, tmp_path, finished):
    with contextlib.nullcontext() if finished else pytest.raises(KeyboardInterrupt):
        translation(corpus).generate_data(tmp_path, progress=None if finished else interrupt_at("pairs", 90))
    path = tmp_path / "vocab.translate_ende.330.spm"
    path.write_bytes(flip(path.read_bytes()))
    with pytest.raises(T2TError, match=f"{path}: (corrupt|not the vocabulary that)"):
        translation(corpus).generate_data(tmp_path)


def test_shards_of_unknown_origin_are_not_touched(corpus, tmp_path):
    (tmp_path / "translate_ende-train-00000-of-00100").write_bytes(b"theirs")
    with pytest.raises(T2TError, match=r"train-00000-of-00100 without translate_ende\.meta\.json"):
        translation(corpus).generate_data(tmp_path)
    assert (tmp_path / "translate_ende-train-00000-of-00100").read_bytes() == b"theirs"
