"""Options of a call of a signature: their specifications and checks, as TensorFlow ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from t2t_revival.decoding.engine import ALL, SearchSettings
from t2t_revival.decoding.hypothesis_scores import ALPHA, PENALTIES, TERMS
from t2t_revival.decoding.options import BEAM, SAMPLING, DecodeHParams
from t2t_revival.serving.signatures import DTYPES, INPUTS, inputs_of


def specs_of(search: str) -> list[tf.TensorSpec]:
    """Returns the inputs of a signature: lines, and the settings of a way of decoding.

    An option is a scalar or [batch], which no signature can express; `check_shape` checks the shape.
    """
    lines, *options = inputs_of(search)
    return [
        tf.TensorSpec([None], tf.string, name=lines),
        *(tf.TensorSpec(None, DTYPES[name], name=name) for name in options),
    ]


OPTIONS, WITH_SEEDS = specs_of(BEAM), specs_of(SAMPLING)
TABLES = tf.TensorSpec(None, tf.string, name="tables")
PREFIXES = tf.TensorSpec(None, tf.string, name="prefixes")
LARGEST = np.iinfo(np.int32).max
MAX_SAMPLES = 100  # of a line
TERM_NAMES = [term.name for term in TERMS]
LIMITS = {  # of options: minimum and maximum
    name: (about.least, min(about.most or LARGEST, LARGEST))
    for name, about in INPUTS.items()
    if about.least is not None and name != "sampling_keep_top_k"
}
TAG = tf.TensorSpec(None, tf.string, name="tag")  # another option, of models with tags


def checks_of(options: dict[str, tf.Tensor], batch: tf.Tensor) -> list[Any]:
    """Returns assertions that fail as INVALID_ARGUMENT if an option has a wrong shape or value."""
    checks = [check_shape(name, value, batch) for name, value in options.items()]
    for name, (minimum, maximum) in LIMITS.items():
        if name in options:
            checks.append(between(name, options[name], minimum, maximum, f"{minimum} and {maximum}"))
    if (k := options.get("sampling_keep_top_k")) is not None:
        message = f"sampling_keep_top_k must be {ALL} or at least 1:"
        checks.append(tf.Assert(tf.reduce_all((k == ALL) | (k >= 1)), [message, k]))
    if "beam_size" in options:
        return [*checks, between("n", options["n"], 1, options["beam_size"], "1 and beam_size")]
    return [*checks, between("n", options["n"], 1, MAX_SAMPLES, f"1 and {MAX_SAMPLES}")]


def search_settings_of(options: dict[str, tf.Tensor], exported: DecodeHParams) -> SearchSettings:
    """Returns the settings of a search, each [batch, 1], from options of a call.

    Terms and penalties that a call has not are those `exported`; terms beside `alpha` only where that is 0.
    """
    sizes, alpha = (options["beam_size"], options["extra_length"], options["n"]), options[ALPHA]
    given = {name: options[name] for name in [*TERM_NAMES, *PENALTIES] if name in options}
    terms = {
        name: tf.where(alpha == 0.0, setting, 0.0)
        for name, setting in exported.score_terms.items()
        if name not in given
    }
    terms |= {name: value for name, value in given.items() if name in TERM_NAMES}
    penalties = exported.penalties | {name: value for name, value in given.items() if name in PENALTIES}
    return SearchSettings(*sizes, terms, penalties)


def check_shape(name: str, value: tf.Tensor, batch: tf.Tensor) -> Any:
    """Returns an assertion that an option has one value for all lines, or one for each."""
    size = tf.size(value)
    fits = (tf.rank(value) <= 1) & ((size == batch) | (size == 1))
    message = f"{name} must be a scalar, or have one value for each line; its shape is:"
    return tf.Assert(fits, [message, tf.shape(value)])


def between(name: str, value: tf.Tensor, minimum: Any, maximum: Any, bounds: str) -> Any:
    """Returns an assertion that all values of an option are in bounds, which are in words too."""
    fits = tf.reduce_all((value >= minimum) & (value <= maximum))
    return tf.Assert(fits, [f"{name} must be between {bounds}:", value])


def column(value: tf.Tensor, batch: tf.Tensor, filler: int | str = 1) -> tf.Tensor:
    """Returns a scalar, [1] or [batch] as [batch, 1]; without lines, [1, 1] for the line that stands in."""
    value = tf.reshape(value, [-1])
    value = tf.concat([value, tf.constant([filler], value.dtype)], axis=0)[: tf.maximum(tf.size(value), 1)]
    return tf.broadcast_to(value, [tf.maximum(batch, 1)])[:, None]
