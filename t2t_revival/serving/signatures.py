"""The signatures of exported models: names, types, and the inputs that settings of decoding become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2t_revival.decoding.options import DecodeHParams

DEFAULT, WITH_OPTIONS = "serving_default", "translate_with_options"  # signatures
WITH_SAMPLING = "translate_with_sampling"
WITH_TABLES = "translate_with_tables"  # of phrases; of models whose outputs are text
WITH_PREFIXES = "translate_with_prefixes"  # beginnings of the outputs; of these models too
DESCRIBE = "describe"  # vocabularies, and what else whoever asks may need
SCORE = "score"  # of given outputs, with their details
NO_OUTPUT = -1e9  # stands for -inf, which JSON lacks: score of the padding where a line has fewer outputs
DTYPES = {
    "inputs": "string",
    "targets": "string",
    "alternatives": "int32",
    "beam_size": "int32",
    "alpha": "float32",
    "extra_length": "int32",
    "n": "int32",
    "tables": "string",
    "prefixes": "string",
    "tag": "string",
    "sampling_temp": "float32",
    "sampling_keep_top_k": "int32",
    "random_seed": "int32",
}

Inputs = Mapping[str, Sequence[Any]]


def signature_of(options: DecodeHParams) -> str:
    """Returns the signature that decodes with some options."""
    return WITH_SAMPLING if options.samples else WITH_OPTIONS


def option_inputs(options: DecodeHParams, lines: int, n: int) -> dict[str, list[Any]]:
    """Returns the options of a signature that decodes to n outputs, each repeated for each line."""
    values: dict[str, Any] = {"extra_length": options.extra_length, "n": n, "alpha": float(options.alpha)}
    if options.samples:
        values["sampling_temp"] = float(options.sampling_temp)
        values["sampling_keep_top_k"] = options.sampling_keep_top_k
        values["random_seed"] = options.random_seed
    else:
        values["beam_size"] = options.candidates_of(options.beam_size)
    return {name: [value] * lines for name, value in values.items()}
