"""Python processes that work for another one, leave Ctrl-C and SIGHUP to it and end with it; and forks.

In a forked process, TensorFlow, JAX and CTranslate2 would wait for threads that were not copied.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from t2t_revival.errors import T2TError

HINT = (
    "start processes by multiprocessing's spawn, or load models only after the fork (gunicorn: no --preload)"
)
ONEDNN_CACHE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"

_in_use = _was_in_use = False  # in this process; in the one that it was forked from


@contextmanager
def without_main_script(pickled: bytes) -> Iterator[None]:
    """Context in which processes of `multiprocessing` are started that do not run the main script again.

    They would import it to find what it defines, and a script without `if __name__ == "__main__":` would do
    all its work in each of them. It is needed only where something that they get is defined in it.

    Args:
        pickled: what they get. Where it names something of the script, they import the script after all.
    """
    main: dict[str, Any] = vars(sys.modules["__main__"])
    if b"__main__" in pickled:
        yield
        return
    hidden: dict[str, Any] = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


def follow_parent() -> None:
    """Makes this process, one of `multiprocessing`, ignore Ctrl-C and SIGHUP and end when its parent does."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def run_in_child(work: str, function: Callable[..., None], *arguments: Any) -> None:
    """Calls a function in a new process, whose memory goes with it.

    Args:
        work: what it does, for messages.
        function: of a module, as pickle needs it.
        *arguments: of the function.

    Raises:
        T2TError: the process was killed. Or what the function raises.
    """
    processes = multiprocessing.get_context("spawn")
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=_call, args=(sender, function, arguments), daemon=True)
    with without_main_script(pickle.dumps(arguments)):
        process.start()
    sender.close()
    try:
        fault = receiver.recv()
    except EOFError as error:
        raise T2TError(f"{work} was killed, as where memory is short: free some, and try again") from error
    finally:
        process.kill()
        process.join()
    if fault:
        raise fault


def _call(sender: Any, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    follow_parent()
    try:
        function(*arguments)
    except Exception as error:
        sender.send(error)
        return
    sender.send(None)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def start_computing() -> None:
    """Notes that this process computes with TensorFlow or JAX, before it does.

    oneDNN keeps 1,024 compiled products, unless the environment says otherwise: batches of a search have more
    shapes, and would compile them again and again.

    Raises:
        T2TError: it was forked from a process in which one of them was in use, and would hang.
    """
    global _in_use
    if _was_in_use:
        raise T2TError(
            f"this process was forked from one that used TensorFlow or JAX, and would hang: {HINT}"
        )
    _in_use = True
    os.environ.setdefault(ONEDNN_CACHE, "4096")


def check_not_forked(owner: int) -> None:
    """Checks that a model is used in the process that has loaded it.

    Args:
        owner: the number of that process.
    """
    if os.getpid() != owner:
        raise T2TError(f"the model was loaded before this process was forked, and would hang: {HINT}")


def _after_fork() -> None:
    global _was_in_use
    _was_in_use = _was_in_use or _in_use or _tensorflow_computes()


def _tensorflow_computes() -> bool:
    """Returns whether TensorFlow has made its threads, whoever has called it."""
    module = sys.modules.get("tensorflow.python.eager.context")
    context = module and module.context_safe()
    return bool(context and getattr(context, "_initialized", False))


os.register_at_fork(after_in_child=_after_fork)
