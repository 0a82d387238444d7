"""Processes that begin with given handlers of signals.

What `preexec_fn` of `subprocess` does is done in the new process instead: with it, Python forks, and the
handlers that gRPC has for forks write to the new process's standard error.
"""

import sys

# A job in the background, as a test may be, ignores Ctrl-C, and so does what it starts.
INTERRUPTIBLE = "signal.signal(signal.SIGINT, signal.SIG_DFL)"
NOHUP = f"{INTERRUPTIBLE}; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
HANGUP_ENDS = f"{INTERRUPTIBLE}; signal.signal(signal.SIGHUP, signal.SIG_DFL)"


def beginning_with(code: str, command: list[str]) -> list[str]:
    """Returns a command that does something, such as `INTERRUPTIBLE`, and becomes another command."""
    first = f"import fcntl, os, signal, sys, termios; {code}; os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", first, *command]
