"""Flags generated from the fields of dataclasses, with their types, defaults and descriptions."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from absl import flags

from t2t_revival.cli.support import command
from t2t_revival.utils.source_code import field_comments

ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


FlagFields = Mapping[str, str]  # by the flag's name
Bounds = tuple[float | None, float | None]


def define_fields(
    values: flags.FlagValues,
    owner: type,
    fields: FlagFields,
    bounds: Mapping[str, Bounds] | None = None,
    optional: bool = False,
) -> None:
    """Defines a flag for each of some fields of a dataclass, which must have descriptions.

    Numbers without `bounds` (least, most) are not negative. With `optional` the flags have no default, so
    that `field_values` leaves out those not given.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(owner)}
    types, helps = get_type_hints(owner), descriptions(owner)
    for flag, field in fields.items():
        default = None if optional or defaults[field] is dataclasses.MISSING else defaults[field]
        _define(values, flag, types[field], default, helps[field], (bounds or {}).get(flag, (0, None)))


def field_values(values: flags.FlagValues, fields: FlagFields) -> dict[str, Any]:
    """The values of the flags by their fields; those that have no value are left out."""
    return {field: values[flag].value for flag, field in fields.items() if values[flag].value is not None}


def descriptions(owner: type) -> dict[str, str]:
    """Reads the descriptions of fields: the docstring's Attributes, or the comments behind the fields."""
    attributes = (inspect.getdoc(owner) or "").partition("\nAttributes:\n")[2].partition("\n\n")[0]
    found = dict(ATTRIBUTE.findall(attributes)) | field_comments(owner)
    return {name: _sentence(text) for name, text in found.items()}


def _sentence(text: str) -> str:
    text = " ".join(text.replace("`", "").split()).removesuffix(".")
    return f"{text[:1].upper()}{text[1:]}."


def _define(values: flags.FlagValues, flag: str, kind: Any, default: Any, text: str, limits: Bounds) -> None:
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    bounds = dict(zip(("lower_bound", "upper_bound"), limits, strict=True))
    if kind is bool:
        flags.DEFINE_bool(flag, default, text, flag_values=values)
    elif kind is int:
        command.define_integer(flag, default, text, flag_values=values, **bounds)  # type: ignore[arg-type]
    elif kind is float:
        flags.DEFINE_float(flag, default, text, flag_values=values, **bounds)
    elif get_origin(kind) is Literal:
        flags.DEFINE_enum(flag, default, list(get_args(kind)), text, flag_values=values)
    elif get_origin(kind) is tuple:
        flags.DEFINE_list(flag, default, text, flag_values=values)
    elif kind in (str, Path):
        flags.DEFINE_string(flag, default, text, flag_values=values)
    else:
        raise TypeError(f"no flag has the type of {flag}: {kind}")
