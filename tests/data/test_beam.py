"""Shards made by Beam: with its direct runner, and over the job protocol that Flink and Spark speak."""

import dataclasses
import gzip
import importlib.util
import json
import os
import random
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("apache_beam", reason='Apache Beam is not installed: pip install ".[beam]"')

from t2t_revival import registry
from t2t_revival.data import beam, workers
from t2t_revival.data.beam import BeamShardRunner
from t2t_revival.data.generation import generate
from t2t_revival.data.metadata import DataSpec
from t2t_revival.data.sources import FolderSource, source
from t2t_revival.errors import T2TError
from t2t_revival.utils.origins import Origins

PORTABLE = pytest.param(
    ("PortableRunner", ["job_endpoint=embed", "environment_type=LOOPBACK"]), marks=pytest.mark.slow
)


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    draw = random.Random(0)
    words = ("dog", "cat", "house", "tree", "garden", "river", "child", "teacher", "window", "street")
    for split, count in (("train", 300), ("dev", 20)):
        for language in ("en", "de"):
            lines = (
                f"{language} {number} {draw.choice(words)} {draw.choice(words)}" for number in range(count)
            )
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))
    return folder


def make_source(name, tmp_dir):
    return source(name, "en", "de", tmp_dir=tmp_dir)


def data_spec(corpus, **changes):
    made = DataSpec("p", str(corpus), "sample", make_source, 330, lambda _: 330)
    return dataclasses.replace(made, **changes)


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "runner",
    [
        ("DirectRunner", []),
        ("direct", ["direct_num_workers=2", "--direct_running_mode=multi_threading"]),
        PORTABLE,
        pytest.param(
            ("DirectRunner", ["direct_num_workers=2", "direct_running_mode=multi_processing"]),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_it_makes_what_this_machines_processes_make(corpus, tmp_path, runner):
    here = generate(data_spec(corpus), tmp_path / "here", None, None)
    calls = []
    there = generate(
        data_spec(corpus),
        tmp_path / "there",
        None,
        lambda *call: calls.append(call),
        BeamShardRunner(*runner),
    )
    assert there == here
    assert snapshot(tmp_path / "there") == snapshot(tmp_path / "here")
    done = [done for stage, done, _ in calls if stage == "pairs"]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, 320)


def test_compressed_files_and_shards_without_pairs(tmp_path, corpus, monkeypatch):
    for file in list(corpus.iterdir()):
        lines = file.read_text().splitlines(keepends=True)
        kept = lines[:4] if file.name.startswith("train") else lines
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress("".join(kept).encode()))
        file.unlink()
    monkeypatch.chdir(tmp_path)  # folders that are named from here are found by workers elsewhere
    asked = data_spec(corpus, vocab_size=0)
    generate(asked, tmp_path / "here", None, None)
    generate(asked, Path("there"), Path("unpacked"), None, BeamShardRunner("DirectRunner"))
    assert snapshot(tmp_path / "there") == snapshot(tmp_path / "here")
    assert not (tmp_path / "unpacked").exists()


@pytest.mark.parametrize("harm", [lambda path: path.unlink(), lambda path: path.write_bytes(b"harmed")])
def test_a_lost_or_corrupt_shard_is_made_again_and_no_other(corpus, tmp_path, harm):
    data = tmp_path / "data"
    generate(data_spec(corpus), data, None, None)
    before, shard = snapshot(data), data / "p-train-00003-of-00010"
    harm(shard)
    kept = {path: path.stat().st_mtime_ns for path in data.iterdir() if path != shard}
    generate(data_spec(corpus), data, None, None, BeamShardRunner("DirectRunner"))
    assert snapshot(data) == before
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_a_corrupt_shard_of_an_unfinished_run_is_made_again(corpus, tmp_path, monkeypatch):
    data = tmp_path / "data"
    generate(data_spec(corpus), tmp_path / "whole", None, None)

    def interrupt(stage, done, total):
        if done >= 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(data_spec(corpus), data, None, interrupt)
    (data / "p-train-00003-of-00010").write_bytes(b"harmed")
    generate(data_spec(corpus), data, None, None, BeamShardRunner("DirectRunner"))
    assert snapshot(data) == snapshot(tmp_path / "whole")


class Slow(FolderSource):
    """Source whose pairs wait for permission."""

    began, go_on = threading.Event(), threading.Event()

    def __reduce__(self):
        return _slow, (self._data_source,)

    def pairs(self, split, start, stop):
        self.began.set()
        self.go_on.wait(20)
        yield from super().pairs(split, start, stop)


def _slow(folder, tmp_dir=None):
    return Slow(folder, "en", "de", tmp_dir)


def _wait_until(happened, seconds):
    deadline = time.monotonic() + seconds
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.01)


@pytest.fixture
def heard():
    """Lets Ctrl-C interrupt, also in a background job that ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("runner", [("DirectRunner", []), PORTABLE])
def test_ctrl_c_ends_the_work_and_the_rest_is_made_afterwards(corpus, tmp_path, monkeypatch, runner):
    data = tmp_path / "data"
    generate(data_spec(corpus), tmp_path / "whole", None, None)
    monkeypatch.setattr(Slow, "began", threading.Event())
    monkeypatch.setattr(Slow, "go_on", threading.Event())
    monkeypatch.setattr(workers, "CHUNK", 10)

    work = data / ".p.unfinished"

    def press():
        Slow.began.wait(30)
        os.kill(os.getpid(), signal.SIGINT)
        _wait_until(lambda: not list(work.glob("run-*")), seconds=10)  # the main thread may be slow to see it
        Slow.go_on.set()

    threading.Thread(target=press).start()
    slow = data_spec(
        corpus, make_source=_slow, vocab_file=tmp_path / "whole" / "vocab.p.330.spm", vocab_size=0
    )
    with pytest.raises(KeyboardInterrupt):
        generate(slow, data, None, None, BeamShardRunner(*runner))
    assert not list(work.glob("run-*"))
    assert not list(work.glob("attempt-*"))
    assert not (data / "p.meta.json").exists()
    assert len(list(data.glob("p-*"))) < 11
    made = generate(data_spec(corpus), data, None, None, BeamShardRunner(*runner))
    dataclasses.replace(made, given_vocabularies=Origins()).save(data / "p.meta.json")  # the whole had none
    assert snapshot(data) == snapshot(tmp_path / "whole")


class Broken(FolderSource):
    """Source that cannot be read after some pairs."""

    error: Exception

    def __reduce__(self):
        return _broken, (self._data_source,)

    def pairs(self, split, start, stop):
        if start >= 150:
            raise self.error
        yield from super().pairs(split, start, stop)


def _broken(folder, tmp_dir=None):
    return Broken(folder, "en", "de", tmp_dir)


@pytest.mark.parametrize("runner", [("DirectRunner", []), PORTABLE])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (T2TError("x.en, line 3: not UTF-8"), r"^x\.en, line 3: not UTF-8$"),
        (
            FileNotFoundError(2, "No such file", "/no/x.en"),
            "cannot find /no/x.en: .* shared by all workers",
        ),
        (RuntimeError("a bug"), "^--runner=.*a bug.*start again to resume$"),
    ],
)
def test_a_workers_error_is_one_line_in_the_launcher(corpus, tmp_path, monkeypatch, runner, error, message):
    vocabulary = generate(data_spec(corpus), tmp_path / "whole", None, None).vocab_file
    monkeypatch.setattr(Broken, "error", error, raising=False)
    asked = data_spec(corpus, make_source=_broken, vocab_file=tmp_path / "whole" / vocabulary, vocab_size=0)
    with pytest.raises(T2TError, match=message) as raised:
        generate(asked, tmp_path / "data", None, None, BeamShardRunner(*runner))
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "data" / "p.meta.json").exists()


def worker(tmp_path, corpus, token="one"):
    data = tmp_path / "data"
    folders = workers.Folders(data, data / ".p.unfinished")
    packed = workers.PackedSource.of(make_source(str(corpus), None))
    return beam.MakeShard(beam.JobFiles(folders, token), packed, [tmp_path / "whole" / "vocab.p.330.spm"])


TASK = workers.ShardTask("p", "train", 3, 10, 90, 120)


def test_attempts_at_the_same_shard_do_not_disturb_each_other(corpus, tmp_path, monkeypatch):
    generate(data_spec(corpus), tmp_path / "whole", None, None)
    (tmp_path / "data" / ".p.unfinished").mkdir(parents=True)
    first, second = worker(tmp_path, corpus), worker(tmp_path, corpus)
    first._files.begin([TASK])
    first.setup()
    second.setup()
    make_shard, both = beam.make_shard, threading.Barrier(2, timeout=10)

    def together(task, context):
        make_shard(task, context)
        both.wait()

    monkeypatch.setattr(beam, "make_shard", together)
    attempts = [threading.Thread(target=it.process, args=[TASK]) for it in (first, second)]
    for attempt in attempts:
        attempt.start()
    for attempt in attempts:
        attempt.join()
    assert first._files.finished([TASK]) == [TASK]
    made = (tmp_path / "data" / TASK.file_name).read_bytes()
    assert made == (tmp_path / "whole" / TASK.file_name).read_bytes()
    assert not list((tmp_path / "data" / ".p.unfinished").glob("attempt-*"))


def test_a_worker_that_outlives_its_run_writes_nothing(corpus, tmp_path):
    generate(data_spec(corpus), tmp_path / "whole", None, None)
    (tmp_path / "data" / ".p.unfinished").mkdir(parents=True)
    late, other = worker(tmp_path, corpus), worker(tmp_path, corpus, "two")
    late._files.begin([TASK])
    late.setup()
    late._files.end()
    other._files.begin([TASK])
    late.process(TASK)
    assert not (tmp_path / "data" / TASK.file_name).exists()
    assert other._files.finished([TASK]) == []


def test_a_worker_that_does_not_see_the_folder_says_so(corpus, tmp_path):
    with pytest.raises(T2TError, match=f"{socket.gethostname()} cannot find .*unfinished: .* must be shared"):
        worker(tmp_path, corpus).setup()


def test_shards_that_are_not_visible_are_an_error(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(beam, "VISIBLE_SECONDS", 0.0)
    monkeypatch.setattr(beam.MakeShard, "process", lambda self, task: None)
    with pytest.raises(T2TError, match="shards that workers made are missing: with --runner, --data_dir and"):
        generate(data_spec(corpus), tmp_path / "data", None, None, BeamShardRunner("DirectRunner"))


def test_a_source_of_a_users_package_is_found_by_workers(corpus, tmp_path):
    package = tmp_path / "beam_usr"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from t2t_revival.data.sources import FolderSource\nclass Own(FolderSource):\n    pass\n"
    )
    registry.import_usr_dir(str(package))
    own = __import__("beam_usr").Own
    packed = workers.PackedSource.of(own(str(corpus), "en", "de"))
    assert packed.usr_dir == str(package)
    assert type(packed.open()) is own


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


@pytest.mark.slow
def test_a_job_server_that_is_not_there_is_one_line(corpus, tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    options = [f"job_endpoint=localhost:{port}", "job_server_timeout=1", "parallelism=4"]
    with pytest.raises(T2TError, match=r"^--runner=FlinkRunner: .*start again to resume$") as raised:
        generate(data_spec(corpus), tmp_path / "data", None, None, BeamShardRunner("FlinkRunner", options))
    assert "\n" not in str(raised.value)


def test_counts_are_written_after_the_shard(corpus, tmp_path):
    generate(data_spec(corpus), tmp_path / "whole", None, None)
    (tmp_path / "data" / ".p.unfinished").mkdir(parents=True)
    made = worker(tmp_path, corpus)
    made._files.begin([TASK])
    made.setup()
    made.process(TASK)
    counts = json.loads((tmp_path / "data" / ".p.unfinished" / f"{TASK.file_name}.json").read_text())
    assert counts["shard_bytes"] == [(tmp_path / "data" / TASK.file_name).stat().st_size]
