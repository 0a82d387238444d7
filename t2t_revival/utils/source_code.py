"""Source code of Python objects: its place, and comments behind fields."""

from __future__ import annotations

import dataclasses
import inspect
import io
import tokenize
from typing import Any


def field_comments(owner: type) -> dict[str, dict[str, str]]:
    """Reads the comment behind each field of a dataclass, by group and name, in their order.

    A group's title is the comment on a line of its own above it, such as "Model (section 3)"; it is empty
    where there is none.
    """
    names = {field.name for field in dataclasses.fields(owner)}
    groups: dict[str, dict[str, str]] = {}
    title = ""
    for token in tokenize.generate_tokens(io.StringIO(inspect.getsource(owner)).readline):
        if token.type != tokenize.COMMENT:
            continue
        text = token.string.lstrip("# ")
        name = token.line.partition(":")[0].strip()
        if name in names:
            groups.setdefault(title, {})[name] = text
        elif token.line.strip() == token.string:
            title = text
    return groups


def place_of(code: Any, cls: type | None = None) -> str:
    """Returns "FILE, line N" of a function, property, generator or class, or else that of its `cls`."""
    code = getattr(code, "fget", code)
    code = getattr(code, "gi_code", inspect.unwrap(code) if callable(code) else code)
    try:
        return f"{inspect.getsourcefile(code)}, line {inspect.getsourcelines(code)[1]}"
    except (OSError, TypeError):
        return place_of(cls) if cls else getattr(code, "__qualname__", repr(code))
