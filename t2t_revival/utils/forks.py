"""Forked processes, where TensorFlow, JAX and CTranslate2 would wait for threads that were not copied."""

from __future__ import annotations

import os
import sys

from t2t_revival.errors import T2TError

HINT = (
    "start processes by multiprocessing's spawn, or load models only after the fork (gunicorn: no --preload)"
)

_in_use = _was_in_use = False  # in this process; in the one that it was forked from


def start_computing() -> None:
    """Notes that this process computes with TensorFlow or JAX.

    Raises:
        T2TError: it was forked from a process in which one of them was in use, and would hang.
    """
    global _in_use
    if _was_in_use:
        raise T2TError(
            f"this process was forked from one that used TensorFlow or JAX, and would hang: {HINT}"
        )
    _in_use = True


def check_not_forked(owner: int) -> None:
    """Checks that a model is used in the process that has loaded it.

    Args:
        owner: the number of that process.

    Raises:
        T2TError: this one was forked from it, and would hang.
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
