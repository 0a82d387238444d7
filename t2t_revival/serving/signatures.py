"""The signatures of exported models: names, types, and the inputs that settings of decoding become."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from t2t_revival.decoding.options import BEAM, SAMPLING, SETTINGS, DecodeHParams, Role

DEFAULT, WITH_OPTIONS = "serving_default", "translate_with_options"  # signatures
WITH_SAMPLING = "translate_with_sampling"
WITH_TABLES = "translate_with_tables"  # of phrases; of models whose outputs are text
WITH_PREFIXES = "translate_with_prefixes"  # beginnings of the outputs; of these models too
DESCRIBE = "describe"  # vocabularies, and what else whoever asks may need
SCORE = "score"  # of given outputs, with their details
NO_OUTPUT = -1e9  # stands for -inf, which JSON lacks: score of the padding where a line has fewer outputs
BY_TYPE = {"str": "string", "int": "int32", "float": "float32", "bool": "bool"}
INPUTS = {name: about for name, about in SETTINGS.items() if about.request is Role.INPUT}
TYPES = {field.name: BY_TYPE[str(field.type)] for field in dataclasses.fields(DecodeHParams)}
DTYPES = {
    **dict.fromkeys(("inputs", "targets", "tables", "prefixes", "tag"), "string"),
    **dict.fromkeys(("alternatives", "n"), "int32"),
    **{name: TYPES[name] for name in INPUTS},
}

Inputs = Mapping[str, Sequence[Any]]


def inputs_of(search: str) -> list[str]:
    """Returns the names of a signature's inputs: the lines, and the settings of a way of decoding."""
    return ["inputs", *(name for name, about in INPUTS.items() if search in about.searches), "n"]


def signature_of(options: DecodeHParams) -> str:
    """Returns the signature that decodes with some options."""
    return WITH_SAMPLING if options.samples else WITH_OPTIONS


def option_inputs(options: DecodeHParams, lines: int, n: int) -> dict[str, list[Any]]:
    """Returns the options of a signature that decodes to n outputs, each repeated for each line."""
    search = SAMPLING if options.samples else BEAM
    values: dict[str, Any] = {"n": n}
    for name, about in INPUTS.items():
        if search in about.searches:
            value = getattr(options, name)
            values[name] = float(value) if TYPES[name] == "float32" else value
    if search == BEAM:
        values["beam_size"] = options.candidates_of(options.beam_size)
    return {name: [value] * lines for name, value in values.items()}
