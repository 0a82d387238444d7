"""Output files: finished lines survive any end of a process."""

import errno
import os
import resource
import signal

import pytest

from t2t_revival import T2TError
from t2t_revival.decoding.outputs import ResultFormat, part_file, side_files
from t2t_revival.errors import HungUp, Terminated

FORM = ResultFormat(lambda text: f"{text}\n".encode(), lambda text: [text], lambda value: value[0])
ALL = {0: "null", 1: "eins", 2: "zwei", 3: "drei"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out"


def write(path, results, notes=None, belongs_to=None, total=4):
    """Adds batches of results to an output, raises errors, calls functions; returns the resumed results."""
    with part_file(path, (notes if notes is not None else []).append) as output:
        known = output.start(belongs_to or {"input": "text"}, total, FORM)
        for batch in results:
            if isinstance(batch, BaseException):
                raise batch
            if callable(batch):
                batch(output)
                continue
            output.add({index: ALL[index] for index in batch if index not in known})
    return known


def interrupted(path, *results, error=None):
    with pytest.raises((KeyboardInterrupt, T2TError)) as caught:
        write(path, [*results, error or KeyboardInterrupt()])
    return str(caught.value)


def names(path):
    return sorted(file.name for file in path.parent.iterdir())


def test_a_file_is_written_in_input_order(path):
    path.write_text("before")
    with part_file(path, pytest.fail) as output:
        output.start({}, 4, FORM)
        seen = []
        for batch in ([2], [0], [3], [1]):
            output.add({index: ALL[index] for index in batch})
            seen.append(side_files(path)[0].read_text())
        assert seen == ["", "null\n", "null\n", "null\neins\nzwei\ndrei\n"]
        assert path.read_text() == "before"
    assert path.read_text() == "null\neins\nzwei\ndrei\n"
    assert names(path) == ["out"]


def test_an_interrupted_one_is_resumed(path):
    said = interrupted(path, [2], [0])
    assert said == f"interrupted; 2 of 4 lines are done and kept with {path}.part; the same command resumes"
    assert names(path) == [".out.part.journal", "out.part"]
    assert (path.parent / "out.part").read_text() == "null\n"
    notes = []
    assert write(path, [[1, 3]], notes) == {0: "null", 2: "zwei"}
    assert notes == [f"resuming {path}.part: 2 of 4 lines are done"]
    assert path.read_text() == "null\neins\nzwei\ndrei\n"
    assert names(path) == ["out"]


@pytest.mark.parametrize("torn", range(1, 30, 7))
def test_what_was_being_written_at_a_kill_is_written_again(path, torn):
    interrupted(path, [0], [1, 2])
    part, journal = side_files(path)
    journal.write_bytes(journal.read_bytes()[:-torn])
    part.write_bytes(b"null\nei")
    interrupted(path, [1])
    assert part.read_text() == "null\neins\n"
    assert write(path, [[2, 3]]) == {0: "null", 1: "eins"}
    assert path.read_text() == "null\neins\nzwei\ndrei\n"


def test_that_of_another_input_starts_again_and_says_what_changed(path):
    interrupted(path, [0], [1])
    notes = []
    assert write(path, [[3, 2, 1, 0]], notes, {"input": "another", "beam_size": 4}) == {}
    assert notes == [
        f"{path}.part cannot be resumed, starting again: input was text, is another, beam_size was None, is 4"
    ]
    interrupted(path, [0])
    side_files(path)[1].write_text("damaged")
    notes = []
    assert write(path, [[3, 2, 1, 0]], notes) == {}
    assert "its journal is corrupt" in notes[0]


def test_without_its_part_nothing_is_resumed(path):
    interrupted(path, [0])
    side_files(path)[0].unlink()
    assert write(path, [[3, 2, 1, 0]]) == {}


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
    assert interrupted(path, [0], error=T2TError("no memory")).startswith("no memory; 1 of 4 lines are done")
    with pytest.raises(T2TError, match=r"^damaged$"), part_file(path, pytest.fail):
        raise T2TError("damaged")
    assert names(path) == [".out.part.journal", "out.part"], "an error before the start loses nothing"


def test_a_full_disk_is_one_line_and_loses_nothing(path, monkeypatch):
    def fsync(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(T2TError, match=f"cannot write {path}: No space left on device; 4 of 4 lines"):
            write(path, [[0, 1, 2, 3]])
    assert write(path, []) == ALL


def test_a_disk_that_is_full_in_the_middle(path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(_):
        resource.setrlimit(resource.RLIMIT_FSIZE, (side_files(path)[1].stat().st_size, limits[1]))

    try:
        with pytest.raises(T2TError, match=f"cannot write {path}: File too large; 1 of 4 lines"):
            write(path, [[0], fill, [1]])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert write(path, [[1, 2, 3]]) == {0: "null"}


def test_two_processes_do_not_write_one_file(path):
    with part_file(path, pytest.fail) as output:
        output.start({}, 1, FORM)
        with pytest.raises(T2TError, match="being written by another process"):
            write(path, [])
        output.add({0: "null"})
    assert path.read_text() == "null\n"


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGTERM, Terminated), (signal.SIGHUP, HungUp)])
def test_signals_are_interruptions_of_their_own(path, number, kind):
    before = signal.signal(number, signal.SIG_DFL)  # SIGHUP may be ignored where the tests run
    with pytest.raises(kind, match="1 of 4 lines"):
        write(path, [[0], lambda _: os.kill(os.getpid(), number), [1]])
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
        write(path, [[0], hang_up, [1]])
    signal.signal(signal.SIGHUP, before)


def test_a_time_that_is_given(path):
    with part_file(path, pytest.fail, mtime_ns=10**18) as output:
        output.start({}, 0, FORM)
    assert path.stat().st_mtime_ns == 10**18
