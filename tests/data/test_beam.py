"""Shards made by Beam: with its direct runner, and over the job protocol that Flink and Spark speak."""

import gzip
import importlib.util
import os
import signal
import socket
import threading
import time

import pytest

pytest.importorskip("apache_beam", reason='Apache Beam is not installed: pip install ".[beam]"')

from t2t_revival import T2TError, Text2TextProblem
from t2t_revival.data import beam, workers
from t2t_revival.data.beam import BeamShardRunner
from t2t_revival.data.mixture import CorpusRows
from t2t_revival.data.sources import FolderSource, source
from tests.support.data_kinds import KINDS, open_problem
from tests.support.line_corpus import snapshot, translation

NIGHTLY = (pytest.mark.slow, pytest.mark.nightly)
PORTABLE = pytest.param(
    ("PortableRunner", ["job_endpoint=embed", "environment_type=LOOPBACK"]), marks=NIGHTLY
)
HERE_AND_PORTABLE = pytest.mark.parametrize("runner", [("DirectRunner", []), PORTABLE])


def by_beam(problem, data_dir, runner=("DirectRunner", []), **settings):
    return problem.generate_data(data_dir, shard_runner=BeamShardRunner(*runner), **settings)


@pytest.mark.parametrize(
    ("kind", "runner"),
    [
        ("plain", ("DirectRunner", [])),
        ("aligned", ("direct", ["direct_num_workers=2", "--direct_running_mode=multi_threading"])),
        pytest.param("cleaned", ("DirectRunner", []), marks=pytest.mark.slow),
        pytest.param("mixture", ("DirectRunner", []), marks=pytest.mark.slow),
        pytest.param("plain", *PORTABLE.values, marks=NIGHTLY),
        pytest.param(
            "plain",
            ("DirectRunner", ["direct_num_workers=2", "direct_running_mode=multi_processing"]),
            marks=NIGHTLY,
        ),
    ],
)
def test_it_makes_what_this_machines_processes_make(sources, whole, tmp_path, monkeypatch, kind, runner):
    monkeypatch.chdir(tmp_path)  # folders that are named from here are found by workers elsewhere
    calls = []
    by_beam(open_problem(KINDS[kind], sources), "data", runner, progress=lambda *call: calls.append(call))
    assert snapshot(tmp_path / "data") == whole(kind)
    if kind == "plain":
        done = [done for stage, done, _ in calls if stage == "pairs"]
        assert done == sorted(done)
        assert (done[0], done[-1]) == (0, 276)


def test_compressed_files_and_shards_without_pairs(tmp_path, corpus):
    for file in list(corpus.iterdir()):
        lines = file.read_text().splitlines(keepends=True)
        kept = lines[:4] if file.name.startswith("train") else lines
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress("".join(kept).encode()))
        file.unlink()
    translation(corpus, vocab_size=0).generate_data(tmp_path / "here")
    by_beam(translation(corpus, vocab_size=0), tmp_path / "there", tmp_dir=tmp_path / "unpacked")
    assert snapshot(tmp_path / "there") == snapshot(tmp_path / "here")
    assert not (tmp_path / "unpacked").exists()


class Slow(FolderSource):
    """Source whose pairs wait for permission."""

    began, go_on = threading.Event(), threading.Event()

    def __reduce__(self):
        return _slow, (self._data_source,)

    def pairs(self, split, start, stop):
        self.began.set()
        self.go_on.wait(20)
        yield from super().pairs(split, start, stop)


def _slow(folder):
    return Slow(folder, "en", "de")


class Broken(FolderSource):
    """Source that cannot be read after some pairs."""

    error: Exception

    def __reduce__(self):
        return _broken, (self._data_source,)

    def pairs(self, split, start, stop):
        if start >= 150:
            raise self.error
        yield from super().pairs(split, start, stop)


def _broken(folder):
    return Broken(folder, "en", "de")


def reading(source, vocabulary):
    """The problem of data that is made of a source object, with the vocabulary of other data."""
    made = {"make_source": lambda self, data_source, tmp_dir: source, "name": "translate_ende"}
    problem = type("UsrReading", (Text2TextProblem,), made)(data_source="given", vocab_file=vocabulary)
    problem.dataset_filename = lambda: "translate_ende"
    return problem


@pytest.fixture
def whole_corpus(corpus, tmp_path):
    """The corpus's data, made at once."""
    translation(corpus).generate_data(tmp_path / "whole")
    return tmp_path / "whole"


@pytest.fixture
def vocabulary(whole_corpus):
    return next(whole_corpus.glob("vocab.*"))


@pytest.fixture
def heard():
    """Lets Ctrl-C interrupt, also in a background job that ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@HERE_AND_PORTABLE
def test_ctrl_c_ends_the_work_and_the_rest_is_made_afterwards(
    corpus, whole_corpus, vocabulary, tmp_path, monkeypatch, runner
):
    data = tmp_path / "data"
    monkeypatch.setattr(Slow, "began", threading.Event())
    monkeypatch.setattr(Slow, "go_on", threading.Event())
    monkeypatch.setattr(workers, "CHUNK", 10)

    def press():
        Slow.began.wait(30)
        os.kill(os.getpid(), signal.SIGINT)
        deadline = time.monotonic() + 10  # the main thread may be slow to see it
        while list(data.glob(".*/run-*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        Slow.go_on.set()

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        by_beam(reading(_slow(str(corpus)), vocabulary), data, runner)
    assert not list(data.glob(".*/run-*"))
    assert not list(data.glob(".*/attempt-*"))
    assert not list(data.glob("*.meta.json"))
    assert len(list(data.glob("*-train-*"))) < 10
    by_beam(translation(corpus, vocab_size=0), data, runner)
    shards = {name: content for name, content in snapshot(data).items() if "meta" not in name}
    assert shards == {name: content for name, content in snapshot(whole_corpus).items() if "meta" not in name}


@HERE_AND_PORTABLE
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (T2TError("x.en, line 3: not UTF-8"), r"^x\.en, line 3: not UTF-8$"),
        (FileNotFoundError(2, "No such file", "/no/x.en"), "cannot find /no/x.en: .* shared by all workers"),
        (RuntimeError("a bug"), "^--runner=.*a bug.*start again to resume$"),
    ],
)
def test_a_workers_error_is_one_line_in_the_launcher(
    corpus, vocabulary, tmp_path, monkeypatch, runner, error, message
):
    monkeypatch.setattr(Broken, "error", error, raising=False)
    with pytest.raises(T2TError, match=message) as raised:
        by_beam(reading(_broken(str(corpus)), vocabulary), tmp_path / "data", runner)
    assert "\n" not in str(raised.value)
    assert not list((tmp_path / "data").glob("*.meta.json"))


TASK = workers.ShardTask("translate_ende", "train", 3, 10, 90, 120)


@pytest.fixture
def begun(whole_corpus, tmp_path):
    """The folders of a generation that makes one shard."""
    folders = workers.Folders(tmp_path / "data", tmp_path / "data" / ".unfinished")
    folders.work.mkdir(parents=True)
    return folders


def worker(files, corpus, vocabulary):
    maker = workers.ShardMaker(CorpusRows(source(str(corpus), "en", "de")), [vocabulary])
    return beam.MakeShard(files, workers.PackedMaker.of(maker))


def test_attempts_at_the_same_shard_do_not_disturb_each_other(
    corpus, whole_corpus, vocabulary, begun, monkeypatch
):
    files = beam.JobFiles(begun, "one")
    files.begin([TASK])
    make, both = workers.ShardMaker.make, threading.Barrier(2, timeout=10)

    def together(*arguments):
        make(*arguments)
        both.wait()

    monkeypatch.setattr(workers.ShardMaker, "make", together)
    makers = [worker(files, corpus, vocabulary) for _ in range(2)]
    for maker in makers:
        maker.setup()
    attempts = [threading.Thread(target=maker.process, args=[TASK]) for maker in makers]
    for attempt in attempts:
        attempt.start()
    for attempt in attempts:
        attempt.join()
    assert files.finished([TASK]) == [TASK]
    assert begun.shard(TASK).read_bytes() == (whole_corpus / TASK.file_name).read_bytes()
    assert not list(begun.work.glob("attempt-*"))


def test_a_worker_that_outlives_its_run_writes_nothing(corpus, vocabulary, begun):
    files, others = beam.JobFiles(begun, "one"), beam.JobFiles(begun, "two")
    late = worker(files, corpus, vocabulary)
    files.begin([TASK])
    late.setup()
    files.end()
    others.begin([TASK])
    late.process(TASK)
    assert not begun.shard(TASK).exists()
    assert others.finished([TASK]) == []


def test_a_worker_that_does_not_see_the_folder_says_so(corpus, vocabulary, tmp_path):
    files = beam.JobFiles(workers.Folders(tmp_path / "data", tmp_path / "none"), "one")
    with pytest.raises(T2TError, match=f"{socket.gethostname()} cannot find .*none: .* must be shared"):
        worker(files, corpus, vocabulary).setup()


def test_shards_that_are_not_visible_are_an_error(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(beam, "VISIBLE_SECONDS", 0.0)
    monkeypatch.setattr(beam.MakeShard, "process", lambda self, task: None)
    with pytest.raises(T2TError, match="shards that workers made are missing: with --runner, --data_dir and"):
        by_beam(translation(corpus), tmp_path / "data")


@pytest.mark.parametrize(
    ("runner", "options", "message"),
    [
        ("FlinkRuner", [], r"unknown runner 'FlinkRuner'; did you mean FlinkRunner"),
        ("some.module.Runner", [], r"unknown runner 'some\.module\.Runner'"),
        ("DirectRunner", ["direct_num_wrkers=2"], "unknown option of Beam 'direct_num_wrkers'; did you mean"),
        ("DirectRunner", ["direct_num_workers=x"], "--beam_pipeline_options: argument --direct_num_workers"),
        ("DirectRunner", ["direct_running_mode=x"], "argument --direct_running_mode: invalid choice: 'x'"),
    ],
)
def test_a_wrong_runner_or_option_is_refused_at_once(runner, options, message):
    with pytest.raises(T2TError, match=message):
        BeamShardRunner(runner, options)


@pytest.mark.skipif(
    importlib.util.find_spec("apitools") is not None, reason="Beam's packages for Google Cloud are installed"
)
def test_dataflow_without_its_packages_is_refused_with_what_to_install():
    with pytest.raises(T2TError, match=r'--runner=DataflowRunner needs .*: pip install "apache-beam\[gcp\]"'):
        BeamShardRunner("dataflow")
