"""Commands run by another command: output, failures and forwarded signals."""

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from t2t_revival import T2TError
from t2t_revival.cli.support.subcommand import run_command
from tests.cli.signals import HANGUP_ENDS, NOHUP, beginning_with

WAITING = """
import sys
from t2t_revival.cli.support.subcommand import run_command
try:
    run_command("t2t-bleu", {{"translations_dir": {folder!r}, "reference": {reference!r}, "wait_minutes": 5}})
except KeyboardInterrupt:
    sys.exit("ended")
"""


@pytest.fixture
def files(tmp_path):
    for name in ("out.de", "ref.de"):
        (tmp_path / name).write_text("ein Hund läuft durch den Park\n")
    (tmp_path / "translations").mkdir()
    return tmp_path


def test_a_command_runs_as_if_it_were_typed(files, capfd):
    run_command(
        "t2t-bleu", {"translation": files / "out.de", "reference": files / "ref.de", "bleu_variant": None}
    )
    captured = capfd.readouterr()
    assert captured.err == f"$ t2t-bleu --translation={files}/out.de --reference={files}/ref.de\n"
    assert "100.00" in captured.out


def test_a_failure_is_an_error_under_its_own_message(files, capfd):
    with pytest.raises(T2TError, match="t2t-bleu failed with exit status 1; see its message above"):
        run_command("t2t-bleu", {"translation": files / "missing", "reference": files / "ref.de"})
    assert "t2t-bleu: error:" in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_passed_on(files, number):
    process = _waiting(files, HANGUP_ENDS)
    child = _child(process.pid)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert said.endswith("ended\n")
    assert not Path(f"/proc/{child}").exists()


def test_a_terminal_that_closes_ends_nothing_under_nohup(files):
    process = _waiting(files, NOHUP)
    _child(process.pid)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


def _waiting(files, before):
    """Runs a command that waits for files; `before` is done first."""
    code = WAITING.format(folder=str(files / "translations"), reference=str(files / "ref.de"))
    command = beginning_with(before, [sys.executable, "-c", code])
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def _child(parent):
    """Waits for the command's process to handle signals; returns its id."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True).stdout.split()
        with suppress(FileNotFoundError, ProcessLookupError):
            if found and _handles_signals(int(found[0]), parent):
                return int(found[0])
        time.sleep(0.05)
    raise AssertionError("the command has not started")


def _handles_signals(process, parent):
    """Returns whether Python's handler of SIGINT is installed, which precedes the main module.

    Until the process is the command, it has its parent's command line, and its handlers.
    """
    own, inherited = (Path(f"/proc/{number}/cmdline").read_text() for number in (process, parent))
    if own == inherited or "t2t-bleu" not in own:
        return False
    with open(f"/proc/{process}/status") as file:
        caught = next(line.split()[1] for line in file if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGINT - 1) & 1)
