"""The fault of a request, in the words of JSON and of the interface."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

LONGEST = 60  # characters of a value that a message repeats
KINDS = {  # of JSON values, by pydantic's types of errors
    "string_type": "a string",
    "list_type": "an array",
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
RULES = {  # of values, with the error's context
    "missing": "is missing",
    "greater_than_equal": "{value} must be at least {ge}",
    "less_than_equal": "{value} must be at most {le}",
    "string_too_short": "{value} must not be empty",
    "string_pattern_mismatch": "{value} must have no spaces",
    "literal_error": "{value} must be {expected}",
    "value_error": "{error}",
}


def fault_of(errors: Sequence[Mapping[str, Any]], body: Any) -> str:
    """Describes the first fault of a request, such as `text[1]: null is not a string`.

    Args:
        errors: of pydantic; several of a value that may have several types.
        body: of the request, as JSON has it.
    """
    placed = [(_place(error, body), error) for error in errors]
    place = max((each for each, _ in placed if each[:1] == placed[0][0][:1]), key=len)
    found = [error for each, error in placed if each == place]
    kinds = dict.fromkeys(KINDS[error["type"]] for error in found if error["type"] in KINDS)
    value = json.dumps(found[0]["input"], ensure_ascii=False, default=str)
    value = value if len(value) <= LONGEST else f"{value[:LONGEST]}..."
    rule = RULES.get(found[0]["type"], "{msg}")
    said = rule.format(value=value, msg=found[0]["msg"], **found[0].get("ctx", {}))
    fault = f"{value} is not {' or '.join(kinds)}" if kinds else said
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return f"{where.removeprefix('.')}: {fault}" if where else fault


def _place(error: Mapping[str, Any], body: Any) -> list[str | int]:
    """Returns the keys and indices that lead to a fault, without pydantic's names of types."""
    source, *parts = error["loc"]
    if source != "body":
        return parts
    place, value = list[str | int](), body
    for part in parts:
        known = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        if part in known:
            value = value[part]
            place.append(part)
    return [*place, *(parts[-1:] if error["type"] == "missing" else [])]
