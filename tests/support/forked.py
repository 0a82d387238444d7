"""Functions that run in a forked process."""

import os
import signal
import warnings
from collections.abc import Callable

from t2t_revival import T2TError

SECONDS = 60  # after which a child that hangs is ended


def in_child(function: Callable[[], object]) -> str:
    """Returns what a function in a forked process returns, or the error."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads in this process
        child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        try:
            said = str(function())
        except T2TError as error:
            said = f"error: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as file:
        said = file.read()
    assert os.waitpid(child, 0)[1] == 0
    return said
