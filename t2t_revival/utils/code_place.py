"""File and line of Python code, for error messages about a user's code."""

from __future__ import annotations

import inspect
from typing import Any


def place_of(code: Any, cls: type | None = None) -> str:
    """Returns "FILE, line N" of a function, property, generator or class.

    Args:
        code: the code to find.
        cls: its class, whose place is returned where that of `code` is unknown.
    """
    code = getattr(code, "fget", code)
    code = getattr(code, "gi_code", inspect.unwrap(code) if callable(code) else code)
    try:
        return f"{inspect.getsourcefile(code)}, line {inspect.getsourcelines(code)[1]}"
    except (OSError, TypeError):
        return place_of(cls) if cls else getattr(code, "__qualname__", repr(code))
