"""Output files: finished lines survive any end of a process."""

import errno
import os
import resource
import signal

import pytest

from t2t_revival import T2TError
from t2t_revival.decoding.files.part_file import part_file, side_files
from t2t_revival.errors import HungUp, Terminated
from t2t_revival.utils.made_of import MadeOf

ALL = ["null", "eins", "zwei", "drei"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out"


def write(path, results=range(4), notes=None, belongs_to=None, total=4):
    """Writes results into an output, raises errors, calls functions; returns the resumed results."""
    with part_file(path, (notes if notes is not None else []).append) as output:
        known = output.start(MadeOf(belongs_to or {"input": "text"}), total)
        for result in results:
            if isinstance(result, BaseException):
                raise result
            if callable(result):
                result(output)
            elif result >= len(known):
                output.write(f"{ALL[result]}\n".encode())
    return known


def interrupted(path, *results, error=None, belongs_to=None):
    with pytest.raises((KeyboardInterrupt, T2TError)) as caught:
        write(path, [*results, error or KeyboardInterrupt()], belongs_to=belongs_to)
    return str(caught.value)


def names(path):
    return sorted(file.name for file in path.parent.iterdir())


def test_a_file_is_written_line_by_line(path):
    path.write_text("before")
    with part_file(path, pytest.fail) as output:
        output.start(MadeOf({}), 2)
        for number in range(2):
            assert side_files(path)[0].read_text().splitlines() == ALL[:number]
            output.write(f"{ALL[number]}\n".encode())
        assert path.read_text() == "before"
    assert path.read_text() == "null\neins\n"
    assert names(path) == ["out"]


@pytest.mark.parametrize("torn", ["", "zw"])
def test_an_interrupted_one_is_resumed(path, torn):
    said = interrupted(path, 0, 1)
    assert said == f"interrupted; 2 of 4 lines are done and kept with {path}.part; the same command resumes"
    assert names(path) == ["out.part", "out.part.json"]
    assert side_files(path)[0].read_text() == "null\neins\n"
    with side_files(path)[0].open("a") as part:
        part.write(torn)
    notes = []
    assert write(path, notes=notes) == ALL[:2]
    assert notes == [f"resuming {path}.part: 2 of 4 lines are done"]
    assert path.read_text() == "null\neins\nzwei\ndrei\n"
    assert names(path) == ["out"]


def test_that_of_another_input_starts_again_and_says_what_changed(path):
    interrupted(path, 0, 1)
    notes = []
    assert write(path, notes=notes, belongs_to={"input": "another", "beam_size": 4}) == []
    assert notes == [
        f"{path}.part cannot be resumed, starting again: input=text, not another; beam_size=None, not 4"
    ]


@pytest.mark.parametrize(("side", "content"), [(1, b"damaged"), (0, b"null\n\xff\n")])
def test_damaged_ones_start_again(path, side, content):
    interrupted(path, 0)
    side_files(path)[side].write_bytes(content)
    notes = []
    assert write(path, notes=notes) == []
    assert notes == [f"{path}.part cannot be resumed, starting again: it is corrupt"]


def test_without_its_part_nothing_is_resumed(path):
    interrupted(path, 0)
    side_files(path)[0].unlink()
    assert write(path) == []


def test_a_file_of_somebody_else_is_left_alone(path):
    part = side_files(path)[0]
    part.write_text("mine")
    with pytest.raises(T2TError, match="was not left by an interrupted run; move it away"):
        write(path, [])
    assert part.read_text() == "mine"
    assert names(path) == ["out.part"]


def test_an_error_keeps_what_is_done_and_leaves_nothing_where_nothing_is(path):
    assert interrupted(path, error=T2TError("no memory")) == "no memory"
    assert names(path) == []
    assert interrupted(path, 0, error=T2TError("no memory")).startswith("no memory; 1 of 4 lines are done")
    with pytest.raises(T2TError, match=r"^damaged$"), part_file(path, pytest.fail):
        raise T2TError("damaged")
    assert names(path) == ["out.part", "out.part.json"], "an error before the start loses nothing"


def test_a_full_disk_is_one_line_and_loses_nothing(path, monkeypatch):
    def fsync(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(T2TError, match=f"cannot write {path}: No space left on device; 4 of 4 lines"):
            write(path)
    assert write(path, []) == ALL


def test_a_disk_that_is_full_in_the_middle(path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(_):
        resource.setrlimit(resource.RLIMIT_FSIZE, (side_files(path)[0].stat().st_size, limits[1]))

    try:
        with pytest.raises(T2TError, match=f"cannot write {path}: File too large; 1 of 4 lines"):
            write(path, [0, fill, 1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert write(path) == ["null"]


def test_two_processes_do_not_write_one_file(path):
    with part_file(path, pytest.fail) as output:
        output.start(MadeOf({}), 1)
        with pytest.raises(T2TError, match="being written by another process"):
            write(path, [])
        output.write(b"null\n")
    assert path.read_text() == "null\n"


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGTERM, Terminated), (signal.SIGHUP, HungUp)])
def test_signals_are_interruptions_of_their_own(path, number, kind):
    before = signal.signal(number, signal.SIG_DFL)  # SIGHUP may be ignored where the tests run
    with pytest.raises(kind, match="1 of 4 lines"):
        write(path, [0, lambda _: os.kill(os.getpid(), number), 1])
    assert signal.signal(number, before) == signal.SIG_DFL


def test_a_hangup_comes_several_times(path):
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)

    def hang_up(_):
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(HungUp, match="1 of 4 lines"):
        write(path, [0, hang_up, 1])
    signal.signal(signal.SIGHUP, before)


def test_a_time_that_is_given(path):
    with part_file(path, pytest.fail, mtime_ns=10**18) as output:
        output.start(MadeOf({}), 0)
    assert path.stat().st_mtime_ns == 10**18
