import io

import pytest

from t2t_revival.cli import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands; `clock(3)` sets it."""

    def set_to(second):
        monkeypatch.setattr(progress.time, "monotonic", lambda: second)

    set_to(0.0)
    return set_to


@pytest.mark.parametrize(("stream", "seconds"), [(io.StringIO(), 5.0), (Terminal(), 0.2)])
def test_a_line_is_due_when_the_last_one_is_old(stream, seconds, clock):
    line = progress.ProgressLine(stream)
    for begin in (0.0, 100.0):
        clock(begin)
        line.show("half")
        clock(begin + seconds - 0.01)
        assert not line.due()
        clock(begin + seconds + 0.01)
        assert line.due()


def test_a_shorter_line_covers_a_longer_one_on_a_terminal():
    stream = Terminal()
    line = progress.ProgressLine(stream)
    line.end()
    line.show("10 of 20")
    line.show("done")
    line.end()
    line.end()
    assert stream.getvalue() == "\r10 of 20\rdone    \n"


def test_a_log_has_plain_lines():
    stream = io.StringIO()
    line = progress.ProgressLine(stream)
    line.show("10 of 20")
    line.show("done")
    line.end()
    assert stream.getvalue() == "10 of 20\ndone\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (65.2, "1:05"), (59.6, "1:00"), (3661, "1:01:01")]
)
def test_duration(seconds, text):
    assert progress.duration(seconds) == text
