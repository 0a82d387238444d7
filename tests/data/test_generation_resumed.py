"""Generation in a data_dir that holds something: unfinished, complete, lost, corrupt or other data."""

import contextlib
import errno
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import T2TError, registry
from t2t_revival.data import workers
from t2t_revival.errors import HungUp, Terminated
from t2t_revival.utils.signals import terminable
from tests.support.data_kinds import KINDS, open_problem
from tests.support.line_corpus import flip, interrupt_at, snapshot, translation, write_corpus

KINDS_OF_FILES = ["plain", "cleaned", "separate", "weighted", "aligned", "trees", "mixture", "languages"]


def made_at(files):
    return {path: path.stat().st_mtime_ns for path in files}


CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "shutil.rmtree",
}  # of files, and opening to write
FAULTS = ["killed", "interrupted", "disk full"]


def stop(generate, fault, at):
    """Calls a function in a forked process, in which the change of a file number `at` does not happen."""
    left = at

    def count(event, arguments):
        nonlocal left
        left -= event in CHANGES or (event == "open" and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR)))
        if left == 0:
            left = -1
            if fault == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise KeyboardInterrupt if fault == "interrupted" else OSError(errno.ENOSPC, "No space left")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads in this process
        child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            sys.addaudithook(count)
            generate()
        os._exit(0)
    os.waitpid(child, 0)


def finished_shards(data):
    """Returns when each shard was made that is kept: it has its counts, or is in the metadata."""
    counted = [path.name.removesuffix(".json") for path in data.glob(".*.unfinished/*-of-*.json")]
    whole = [path.name.removesuffix(".meta.json") for path in data.glob("*.meta.json")]
    shards = data.glob("*-?????-of-?????")
    return made_at(path for path in shards if path.name in counted or path.name.rsplit("-", 4)[0] in whole)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5, deadline=None)
@given(faults=st.lists(st.tuples(st.sampled_from(FAULTS), st.integers(1, 70)), min_size=1, max_size=4))
def test_stopped_at_any_write_it_makes_the_same_and_nothing_twice(
    kind, faults, sources, whole, tmp_path_factory
):
    data = tmp_path_factory.mktemp("stopped") / "data"
    generate, before = (lambda: open_problem(KINDS[kind], sources).generate_data(data)), {}
    for fault, at in faults:
        stop(generate, fault, at)
        assert before.items() <= finished_shards(data).items()
        before = finished_shards(data)
    if "killed" not in dict(faults):
        assert not list(data.glob(".*.tmp"))
        assert before or not data.exists() or list(data.glob(".*")) or not list(data.iterdir())
    generate()
    assert before.items() <= finished_shards(data).items()
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


DAMAGES = {  # of a shard of train, by its index, and what is said
    2: (lambda content: None, ""),
    3: (flip, r"truncated or corrupt at byte \d+"),
    4: (lambda content: content[:-3], r"\d+ bytes instead of \d+"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_FILES)
def test_lost_and_corrupt_files_are_made_again_and_no_others(kind, sources, whole, tmp_path):
    stages, due = [], []
    open_problem(KINDS[kind], sources).generate_data(tmp_path)
    for path in tmp_path.glob("*.references"):
        path.unlink()
    kept = made_at(tmp_path.glob("*-train-*"))
    for index, (change, message) in DAMAGES.items():
        shard = min(tmp_path.glob(f"*-train-{index:05}-of-00010"))
        content = change(shard.read_bytes())
        del kept[shard]
        shard.unlink()
        if content is not None:
            shard.write_bytes(content)
            due.append(f"making {shard.name} again: {message}")
    again = registry.problem(KINDS[kind].problem)
    again.generate_data(tmp_path, progress=lambda stage, done, total: stages.append(stage))
    assert snapshot(tmp_path) == whole(kind)
    assert kept.items() <= made_at(tmp_path.glob("*-train-*")).items()
    said = [stage for stage in stages if stage.startswith("making")]
    assert len(said) == len(due)
    assert all(map(re.fullmatch, due, said))
    stages.clear()
    again.generate_data(tmp_path, progress=lambda stage, done, total: stages.append(stage))
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
    assert not list((tmp_path / "data").glob(".*.tmp"))
    assert translation(corpus).generate_data(tmp_path / "data").splits["train"].examples == 300


def test_rules_that_a_killed_generation_of_another_corpus_has_left_are_not_used(sources, whole, tmp_path):
    (tmp_path / ".translate_ende.unfinished").mkdir()
    (tmp_path / ".translate_ende.unfinished" / "train.rules").write_bytes(bytes(247))
    open_problem(KINDS["cleaned"], sources).generate_data(tmp_path)
    assert snapshot(tmp_path) == whole("cleaned")
    assert not list(tmp_path.glob(".*"))


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
    def interrupt(stage, done, total):
        if list(tmp_path.glob("*-train-*")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_problem(KINDS["cleaned"], sources).generate_data(tmp_path, progress=interrupt)
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
def test_a_vocabulary_exchanged_or_lost_on_the_way_is_refused(corpus, tmp_path, finished):
    with contextlib.nullcontext() if finished else pytest.raises(KeyboardInterrupt):
        translation(corpus).generate_data(tmp_path, progress=None if finished else interrupt_at("pairs", 90))
    path = tmp_path / "vocab.translate_ende.330.spm"
    path.write_bytes(flip(path.read_bytes()))
    with pytest.raises(T2TError, match=f"{path}: (corrupt|not the vocabulary that)"):
        translation(corpus).generate_data(tmp_path)
    path.unlink()
    with pytest.raises(T2TError, match=f"{path}: no such vocabulary; if data has lost it, put a copy back"):
        translation(corpus).generate_data(tmp_path)
    translation(corpus).generate_data(tmp_path, overwrite=True)
    assert path.exists()


def test_shards_of_unknown_origin_are_not_touched(corpus, tmp_path):
    (tmp_path / "translate_ende-train-00000-of-00100").write_bytes(b"theirs")
    with pytest.raises(T2TError, match=r"train-00000-of-00100 without translate_ende\.meta\.json"):
        translation(corpus).generate_data(tmp_path)
    assert (tmp_path / "translate_ende-train-00000-of-00100").read_bytes() == b"theirs"
