"""Running one of this project's commands in a process of its own."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from t2t_revival.cli.support.messages import say
from t2t_revival.errors import T2TError
from t2t_revival.utils.signals import INTERRUPTIONS, ending_signals, handling


def run_command(name: str, flags: Mapping[str, object]) -> None:
    """Prints a command and runs it in a process of its own.

    Signals that would end this process are forwarded to the command, so that it can save its work; those that
    this process ignores, as SIGHUP under nohup, are ignored by both.

    Flags of value `None` are left out.

    Raises:
        T2TError: the command failed; it has printed its own message.
        KeyboardInterrupt: the command or this process was interrupted; `Terminated` and `HungUp` are too.
    """
    say("$ " + shlex.join([name, *_arguments(flags)]))
    received: list[signal.Signals] = []
    heeded = [number for number in ending_signals() if signal.getsignal(number) is not signal.SIG_IGN]
    with handling(dict.fromkeys(heeded, lambda number, frame: received.append(signal.Signals(number)))):
        process, forwarded, status = start_command(name, flags), 0, None
        while status is None:
            for number in received[forwarded:]:
                process.send_signal(number)
                forwarded += 1
            with suppress(subprocess.TimeoutExpired):
                status = process.wait(0.1)
    if received:
        raise INTERRUPTIONS[received[0]]
    if status in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    if status:
        raise T2TError(f"{name} failed with exit status {status}; see its message above")


def start_command(name: str, flags: Mapping[str, object], **settings: Any) -> subprocess.Popen[bytes]:
    """Starts a command in a process of its own, which Ctrl-C does not reach; `settings` are of `Popen`."""
    module = "t2t_revival.cli." + name.removeprefix("t2t-").replace("-", "_")
    code = f"import sys; from {module} import main; sys.argv[0] = {name!r}; sys.exit(main())"
    command = [sys.executable, "-c", code, *_arguments(flags)]
    return subprocess.Popen(command, start_new_session=True, **settings)


def _arguments(flags: Mapping[str, object]) -> list[str]:
    return [f"--{flag}={value}" for flag, value in flags.items() if value is not None]
