"""The lock of an output_dir: one trainer holds it, and it ends with its owner."""

from __future__ import annotations

import errno
import fcntl
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_revival import T2TError
from t2t_revival.training.lock import FILE_NAME, check_free, output_dir_lock
from t2t_revival.training.run import check_place

HOLD = """
import sys
from pathlib import Path
from t2t_revival.training.lock import output_dir_lock
with output_dir_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path):
    """Another process that trains in tmp_path / "out"."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "out")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_trainer_is_refused_until_the_first_is_killed(
    holder: subprocess.Popen, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(T2TError, match=f"{out} is in use by another t2t-trainer"), output_dir_lock(out):
        pass
    with pytest.raises(T2TError, match="another t2t-trainer"):
        check_place(out, "translate_ende", "tiny")
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (out / FILE_NAME).exists(), "a file that is left over locks nobody out"
    check_free(out)
    with output_dir_lock(out):
        (out / "something").touch()
    check_place(out, "translate_ende", "tiny")


def test_a_folder_that_stays_empty_goes_again_unless_it_was_there(tmp_path: Path) -> None:
    with output_dir_lock(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert not (tmp_path / "a").exists()
    with output_dir_lock(tmp_path):
        pass
    assert tmp_path.is_dir()


def test_no_lock_file_where_nothing_was_trained(tmp_path: Path) -> None:
    check_free(tmp_path)
    check_free(tmp_path / "nowhere")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("number", "passes"), [(errno.ENOLCK, True), (errno.EIO, False)])
def test_a_file_system_without_locks_refuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, passes: bool
) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    if passes:
        with output_dir_lock(tmp_path):
            return
    with pytest.raises(OSError, match="no locks"), output_dir_lock(tmp_path):
        pass


def test_workers_that_look_at_the_same_time_do_not_refuse_each_other(tmp_path: Path) -> None:
    with output_dir_lock(tmp_path):
        pass
    with (tmp_path / FILE_NAME).open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # as `check_free` of another worker
        check_free(tmp_path)
