"""Running one of this project's commands from another one, as if it had been typed."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from types import FrameType

from t2t_revival.cli.lines import say
from t2t_revival.errors import T2TError

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_command(name: str, flags: Mapping[str, object]) -> None:
    """Runs a command in a process of its own, and shows what is run.

    Signals that would end this process are passed on to it, once each, so that it can save what it has.

    Args:
        name: such as "t2t-trainer".
        flags: names and values; flags that are None are left out.

    Raises:
        T2TError: it failed; its own message stands above.
        KeyboardInterrupt: it was interrupted, or this process was meanwhile.
    """
    arguments = [f"--{flag}={_text(value)}" for flag, value in flags.items() if value is not None]
    say("$ " + shlex.join([name, *arguments]))
    module = "t2t_revival.cli." + name.removeprefix("t2t-").replace("-", "_")
    code = f"import sys; from {module} import main; sys.argv[0] = {name!r}; sys.exit(main())"
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], start_new_session=True)
    heard: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard or status in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    if status:
        raise T2TError(f"{name} failed with status {status}; what it said stands above")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
