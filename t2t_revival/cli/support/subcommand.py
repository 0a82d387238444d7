"""Running one of this project's commands from another one, as if it had been typed."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from t2t_revival.cli.lines import say
from t2t_revival.errors import T2TError

PASSED_ON = {  # what ends this process -> what has the command save and end
    signal.SIGINT: signal.SIGINT,
    signal.SIGTERM: signal.SIGTERM,
    signal.SIGHUP: signal.SIGTERM,
}


def run_command(name: str, flags: Mapping[str, object]) -> None:
    """Runs a command in a process of its own, and shows what is run.

    Signals that would end this process are passed on to it, so that it can save what it has; those that this
    process ignores, as SIGHUP under nohup, are ignored by both.

    Args:
        name: such as "t2t-trainer".
        flags: names and values; flags that are None are left out.

    Raises:
        T2TError: it failed; its own message stands above.
        KeyboardInterrupt: it was interrupted, or this process was meanwhile.
    """
    arguments = [f"--{flag}={value}" for flag, value in flags.items() if value is not None]
    say("$ " + shlex.join([name, *arguments]))
    module = "t2t_revival.cli." + name.removeprefix("t2t-").replace("-", "_")
    code = f"import sys; from {module} import main; sys.argv[0] = {name!r}; sys.exit(main())"
    with _heard() as heard:
        process = subprocess.Popen([sys.executable, "-c", code, *arguments], start_new_session=True)
        status = _wait(process, heard)
    if heard or status in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    if status:
        raise T2TError(f"{name} failed with status {status}; what it said stands above")


@contextmanager
def _heard() -> Iterator[list[int]]:
    """Collects the signals that arrive inside, which do nothing else."""
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    before = {number: signal.getsignal(number) for number in PASSED_ON}
    listened = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in listened:
        signal.signal(number, hear)
    try:
        yield heard
    finally:
        for number in listened:
            signal.signal(number, before[number])


def _wait(process: subprocess.Popen, heard: list[int]) -> int:
    """Waits for the end of a process, and passes on what was heard, once each."""
    passed = 0
    while True:
        for number in heard[passed:]:
            process.send_signal(PASSED_ON[signal.Signals(number)])
            passed += 1
        try:
            return process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
