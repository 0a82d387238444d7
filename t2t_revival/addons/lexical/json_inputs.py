"""Inputs as JSON lines: a text, with constraints of its output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from t2t_revival.addons.lexical.constraints import LineConstraints, united
from t2t_revival.addons.lexical.terminology import Terminology
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import T2TError, at, did_you_mean, similar

EXAMPLE = 'write {"text": "..."}'


@dataclass(frozen=True)
class JsonLine:
    """A line of input.

    Attributes:
        text: to be decoded.
        constraints: phrases that the output must have.
        avoid: phrases that it must not have.
        terms: translations of terms, which hold if the text has the term; see `Terminology`.
    """

    text: str
    constraints: list[str] = field(default_factory=list)
    avoid: list[str] = field(default_factory=list)
    terms: dict[str, str] = field(default_factory=dict)

    def all_constraints(self, terminology: Terminology) -> LineConstraints:
        """Returns the constraints of the line, with those of its own terms and of a terminology."""
        own = terminology.with_terms(self.terms).constraints(self.text)
        return replace(own, phrases=united(self.constraints, own.phrases), avoid=tuple(self.avoid))


NAMES = tuple(one.name for one in fields(JsonLine))


def parse_json_lines(lines: Sequence[str], name: str, first_line: int = 1) -> list[JsonLine]:
    """Parses JSON objects, one on each line.

    Args:
        lines: of a file.
        name: of the file, for errors.
        first_line: number of the first line.

    Raises:
        T2TError: a line is not such an object; names file and line.
    """
    parsed = []
    for number, line in enumerate(lines, start=first_line):
        with at(f"{name}, line {number}"):
            parsed.append(_parse(line))
    return parsed


def _parse(line: str) -> JsonLine:
    try:
        values = json.loads(line, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise T2TError(f"not JSON ({error}): {EXAMPLE}") from error
    for fault in _faults(values):
        raise T2TError(fault)
    return JsonLine(**values)


def _faults(given: Any) -> Iterator[str]:
    if not isinstance(given, dict):
        yield f"not a JSON object: {EXAMPLE}"
    yield from (_unknown(name) for name in given if name not in NAMES)
    line = {"text": None, "constraints": [], "avoid": [], "terms": {}, **given}
    if not isinstance(line["text"], str):
        yield f'no "text" that is a string: {EXAMPLE}'
    for name in ("constraints", "avoid"):
        phrases = line[name]
        if not isinstance(phrases, list) or not all(isinstance(phrase, str) for phrase in phrases):
            yield f'"{name}" must be a list of strings, such as ["..."]'
    terms = line["terms"]
    if not isinstance(terms, dict) or not all(isinstance(target, str) for target in terms.values()):
        yield '"terms" must be an object of strings, such as {"source term": "target term"}'
    if not all(side.strip() for pair in terms.items() for side in pair):
        yield 'a term in "terms" or its translation is empty: leave it out'


def _unknown(name: str) -> str:
    """Describes the fault of an unknown key, which may be a setting of all lines."""
    settings = similar(name, (one.name for one in fields(DecodeHParams)))
    if settings and not similar(name, NAMES):
        return f"unknown key {name!r}; for all lines, give --decode_hparams={settings[0]}=VALUE"
    return did_you_mean(name, NAMES, "key")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise T2TError(f"the key {double!r} is there twice: keep one")
    return values
