"""Progress: a bar on a terminal, plain lines in a log."""

import io
import re

import pytest

from t2t_revival.cli.support import messages


class Terminal(io.StringIO):
    def isatty(self):
        return True


def show(stream, monkeypatch, *updates):
    """Shows updates (second, done) of 9000 pairs; returns the text written."""
    with messages.ProgressBar("pairs", stream) as bar:
        for second, done in updates:
            monkeypatch.setattr(messages.time, "monotonic", lambda now=second: now)
            bar.update(done, 9000)
    return stream.getvalue()


def test_a_log_has_a_line_every_five_seconds(monkeypatch):
    updates = [(110, 1000), (111, 2000), (114.9, 4000), (118, 5000), (122.9, 6000), (126, 9000), (140, 9000)]
    assert show(io.StringIO(), monkeypatch, *updates).splitlines() == [
        "5,000 of 9,000 pairs, 500.0 pairs/s, 0:08 left",
        "8,000 pairs in 0:16, 500.0 pairs/s",
    ]


def test_a_terminal_has_a_bar_that_a_line_replaces(monkeypatch):
    shown = show(Terminal(), monkeypatch, (110, 1000), (110.1, 1500), (111, 2000), (118, 5000), (126, 9000))
    assert "1,500 of" not in shown
    assert re.search(r"\r +12%\|.*\| 2,000 of 9,000 pairs, 1,000.0 pairs/s, 0:07 left", shown)
    assert re.search(r"\r +50%\|.*\| 5,000 of 9,000 pairs, 500.0 pairs/s, 0:08 left", shown)
    assert shown.rpartition("\r")[2] == "8,000 pairs in 0:16, 500.0 pairs/s\n"


def test_an_unfinished_bar_is_removed(monkeypatch):
    shown = show(Terminal(), monkeypatch, (110, 1000), (111, 2000))
    assert re.search(r"\r +\r$", shown)
    assert "\n" not in shown


def test_the_time_left_follows_the_share_of_the_work(monkeypatch):
    stream = io.StringIO()
    bar = messages.ProgressBar("sentences", stream)
    for second, done, share in ((0.0, 0, 0.0), (30.0, 10, 0.75)):
        monkeypatch.setattr(messages.time, "monotonic", lambda now=second: now)
        bar.update(done, 100, share)
    assert stream.getvalue() == "10 of 100 sentences, 0.3 sentences/s, 0:10 left\n"


def test_nothing_to_do_shows_nothing(monkeypatch):
    assert show(io.StringIO(), monkeypatch, (1, 9000), (10, 9000)) == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (65.2, "1:05"), (59.6, "1:00"), (3661, "1:01:01")]
)
def test_duration(seconds, text):
    assert messages.duration(seconds) == text
