"""Watched files: each is yielded once, in the order of steps, and waited for no longer than asked."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from t2t_revival.cli.support import wait_flags


@dataclass(frozen=True)
class File:
    step: int
    path: Path


class Time:
    """A clock whose sleeps take no time, and in which things may happen."""

    def __init__(self) -> None:
        self.start = self.seconds = time.time()
        self.then = []  # (seconds after the start, what happens)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.seconds += seconds
        for event in [event for event in self.then if self.start + event[0] <= self.seconds]:
            self.then.remove(event)
            event[1]()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(wait_flags, "now", lambda: clock.seconds)
    monkeypatch.setattr(wait_flags, "sleep", clock.sleep)
    return clock


def listing(folder: Path):
    return lambda: [File(int(path.name), path) for path in sorted(folder.iterdir())]


def steps(list_files, seconds: float = 0, min_steps: int = 0) -> list[int]:
    return [file.step for file in wait_flags.step_files(list_files, seconds / 60, "a file", min_steps)]


def test_lowest_step_first_whatever_their_names(tmp_path: Path, clock: Time) -> None:
    for step in (1000, 9, 30):
        (tmp_path / str(step)).touch()
    assert steps(listing(tmp_path)) == [9, 30, 1000]
    assert steps(listing(tmp_path), min_steps=30) == [30, 1000]
    assert clock.seconds == clock.start, "without wait_seconds nothing is waited for"


def test_those_that_appear_are_given_and_older_ones_are_not(tmp_path: Path, clock: Time, capsys) -> None:
    (tmp_path / "20").touch()
    clock.then = [(35, (tmp_path / "10").touch), (45, (tmp_path / "30").touch)]
    assert steps(listing(tmp_path), 60.0) == [20, 30]
    told = capsys.readouterr().err.splitlines()
    assert [line[:24] for line in told] == ["waiting for a file until"] * 2, "each wait is told once"


def test_the_wait_counts_from_the_last_file(tmp_path: Path, clock: Time) -> None:
    """The wait counts from a file's own time, so that an old file leaves none."""
    (tmp_path / "20").touch()
    assert steps(listing(tmp_path), 60.0) == [20]
    assert clock.seconds - clock.start == pytest.approx(60, abs=5)
    clock.seconds += 1000
    before = clock.seconds
    assert steps(listing(tmp_path), 60.0) == [20]
    assert clock.seconds == before


def test_the_wait_for_the_first_counts_from_the_start(tmp_path: Path, clock: Time) -> None:
    assert steps(listing(tmp_path), 25.0) == []
    assert clock.seconds == clock.start + 25


def test_files_that_go_are_passed_over(tmp_path: Path, clock: Time) -> None:
    for step in (1, 2, 3):
        (tmp_path / str(step)).touch()
    found = wait_flags.step_files(listing(tmp_path), 0, "a file")
    assert next(found).step == 1
    (tmp_path / "2").unlink()
    assert [file.step for file in found] == [3]
    gone = [File(1, tmp_path / "1"), File(7, tmp_path / "7")]
    assert steps(lambda: gone) == [1]


def test_two_files_of_one_step_are_both_given(tmp_path: Path, clock: Time) -> None:
    files = [File(5, tmp_path / name) for name in ("b", "a")]
    for file in files:
        file.path.touch()
    assert list(wait_flags.step_files(lambda: files, 0, "a file")) == files
