"""What is wrong with a request, in the words of JSON and of the interface."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

LONGEST = 60  # characters of a value that a message repeats
KINDS = {  # of JSON values, by pydantic's types of errors
    "string_type": "a string",
    "string_sub_type": "a string",
    "list_type": "a list",
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
RULES = {  # formatted with the error's context
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must have no spaces",
    "literal_error": "must be {expected}",
}


def fault_of(errors: Sequence[Mapping[str, Any]], body: Any) -> str:
    """Describes the first fault of a request, such as `text[1]: null is not a string`.

    Args:
        errors: of pydantic, of the body and of parts of the path.
        body: of the request, as JSON has it.
    """
    places = [_place(error, body) for error in errors]
    most = max(len(place) for place in places if place[:1] == places[0][:1])  # the inner one of several types
    found = [
        error
        for error, place in zip(errors, places, strict=True)
        if place[:1] == places[0][:1] and len(place) == most
    ]
    first, place = found[0], places[errors.index(found[0])]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    kinds = [KINDS[error["type"]] for error in found if error["type"] in KINDS]
    fault = f"{_shown(first['input'])} is not {' or '.join(dict.fromkeys(kinds))}" if kinds else _said(first)
    return f"{where}: {fault}" if where else fault


def _place(error: Mapping[str, Any], body: Any) -> list[str | int]:
    """Returns the keys and indices that lead to a fault, without pydantic's names of types."""
    source, *parts = error["loc"]
    if source != "body":
        return parts
    place: list[str | int] = []
    value = body
    for part in parts:
        if isinstance(value, dict | list) and part in (
            value if isinstance(value, dict) else range(len(value))
        ):
            value = value[part]
            place.append(part)
    if error["type"] == "missing":
        place.append(parts[-1])
    return place


def _said(error: Mapping[str, Any]) -> str:
    """Describes a fault that is not one of the type."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return "is missing"
    if kind in RULES:
        return f"{_shown(error['input'])} {RULES[kind].format(**context)}"
    return str(context.get("error") or context.get("fault") or error["msg"])


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
