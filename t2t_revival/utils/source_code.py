"""Source code of Python objects: its place, and comments behind fields."""

from __future__ import annotations

import dataclasses
import inspect
import io
import tokenize
from typing import Any


def field_comments(owner: type) -> dict[str, str]:
    """Reads the comment behind each field of a dataclass that has one."""
    names = {field.name for field in dataclasses.fields(owner)}
    comments = {}
    for token in tokenize.generate_tokens(io.StringIO(inspect.getsource(owner)).readline):
        name = token.line.partition(":")[0].strip()
        if token.type == tokenize.COMMENT and name in names:
            comments[name] = token.string.lstrip("# ")
    return comments


def place_of(code: Any, cls: type | None = None) -> str:
    """Returns "FILE, line N" of a function, property, generator or class, or else that of its `cls`."""
    code = getattr(code, "fget", code)
    code = getattr(code, "gi_code", inspect.unwrap(code) if callable(code) else code)
    try:
        return f"{inspect.getsourcefile(code)}, line {inspect.getsourcelines(code)[1]}"
    except (OSError, TypeError):
        return place_of(cls) if cls else getattr(code, "__qualname__", repr(code))
