"""YAML files that people write: read with errors that name the line or the key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_revival.errors import T2TError

KINDS = {
    str: "a text; where YAML takes it for another value, put it in quotes",
    float: "a number such as 2 or 0.5",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
    (str, list): "a text or a list of texts",
}


def load(path: Path) -> Any:
    """Reads a file, in which no mapping has a key twice.

    Raises:
        T2TError: it cannot be read, or is not valid YAML; the message does not name the file.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        _check_unique(yaml.compose(text, yaml.SafeLoader))
        return yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        raise T2TError(f"cannot be read ({getattr(error, 'strerror', None) or 'it is not UTF-8'})") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date may be none of the calendar's
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise T2TError(f"{where}not valid YAML ({getattr(error, 'problem', None) or error})") from error


def check_keys(where: str, mapping: Any, types: Mapping[str, Any]) -> None:
    """Checks that a mapping has no other keys than those of `types`, and values of these types.

    Raises:
        T2TError: as said; the message begins with `where`.
    """
    if not isinstance(mapping, dict):
        raise T2TError(f"{where}: not a mapping of {', '.join(types)}")
    for key, value in mapping.items():
        if key not in types:
            raise T2TError(f"{where}: unknown key {key!r}; known are {', '.join(types)}")
        kind = types[key]
        accepted = (int, float) if kind is float else kind
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise T2TError(f"{where}: {key} is {value!r}, not {KINDS[kind]}")


def _check_unique(node: Any) -> None:
    """Checks that no mapping of a YAML file has a key twice, of which its parser would take the last."""
    if node is None or node.id == "scalar":
        return
    children = node.value
    if node.id == "mapping":
        keys, children = zip(*node.value, strict=True) if node.value else ((), ())
        names = [key.value for key in keys]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise T2TError(f"line {keys[number].start_mark.line + 1}: {name!r} is given twice")
    for child in children:
        _check_unique(child)
