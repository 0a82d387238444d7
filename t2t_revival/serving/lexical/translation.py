"""The signature of an exported model that translates with phrases that outputs must have or must not have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import tensorflow as tf

from t2t_revival.data.vocabulary.text_encoder import PAD
from t2t_revival.decoding.engine import SearchSettings
from t2t_revival.serving.call_options import OPTIONS, TAG, check_shape, column
from t2t_revival.serving.lexical.search import PhraseSearch
from t2t_revival.serving.lexical.texts import split_phrases
from t2t_revival.serving.signatures import NO_OUTPUT

CONSTRAINTS = [tf.TensorSpec(None, tf.string, name=name) for name in ("constraints", "avoid")]
Outputs = dict[str, tf.Tensor]


class ConstrainedTranslation:
    """Translates lines, of which some have phrases, with the options of the call.

    Args:
        search: finds the outputs of lines with phrases.
        free: the signature that translates lines without them.
        translate: from a search, inputs and prefixes to outputs; see `ServingModule`.
        columns: checks options of a call; returns each as [batch, 1].
        prefixes: checks tags; returns the text before each line. `None` for a model without tags.

    Attributes:
        function: the signature. It has the inputs of the one for free lines, and two more, string, scalar or
            [batch]: `constraints` and `avoid`, the phrases of a line, separated by line feeds. Both are "" by
            default.
    """

    def __init__(
        self,
        search: PhraseSearch,
        free: Any,
        translate: Callable[..., Outputs],
        columns: Callable[[dict[str, tf.Tensor], tf.Tensor], dict[str, tf.Tensor]],
        prefixes: Callable[[tf.Tensor, tf.Tensor], tf.Tensor] | None,
    ) -> None:
        self._search, self._free, self._translate = search, free, translate
        self._columns, self._prefixes = columns, prefixes
        none = tf.constant("")  # becomes the default of the signature's inputs

        def translate_with_constraints(
            inputs: tf.Tensor,
            beam_size: tf.Tensor,
            alpha: tf.Tensor,
            extra_length: tf.Tensor,
            n: tf.Tensor,
            constraints: tf.Tensor = none,
            avoid: tf.Tensor = none,
        ) -> Outputs:
            settings = SearchSettings(beam_size, alpha, extra_length, n)
            return self._call(inputs, settings, constraints, avoid)

        def translate_with_tag(
            inputs: tf.Tensor,
            beam_size: tf.Tensor,
            alpha: tf.Tensor,
            extra_length: tf.Tensor,
            n: tf.Tensor,
            constraints: tf.Tensor = none,
            avoid: tf.Tensor = none,
            tag: tf.Tensor = none,
        ) -> Outputs:
            settings = SearchSettings(beam_size, alpha, extra_length, n)
            return self._call(inputs, settings, constraints, avoid, tag)

        signature = [*OPTIONS, *CONSTRAINTS, *([TAG] if prefixes else [])]
        function = translate_with_tag if prefixes else translate_with_constraints
        self.function = tf.function(function, input_signature=signature, autograph=False)

    def _call(
        self,
        inputs: tf.Tensor,
        settings: SearchSettings,
        constraints: tf.Tensor,
        avoid: tf.Tensor,
        tag: tf.Tensor | None = None,
    ) -> Outputs:
        batch = tf.shape(inputs)[0]
        columns = self._columns(settings._asdict(), batch)
        texts = {"constraints": constraints, "avoid": avoid}
        with tf.control_dependencies([check_shape(name, each, batch) for name, each in texts.items()]):
            phrases, avoided = (split_phrases(column(x, batch, "")[:, 0])[:batch] for x in texts.values())
        is_bound = tf.reduce_any(phrases != "", axis=1) | tf.reduce_any(avoided != "", axis=1)
        beams = columns["beam_size"][:batch, 0]
        has_beam = tf.reduce_all(~is_bound | (beams >= 2))
        bound, free = (tf.where(mask)[:, 0] for mask in (is_bound, ~is_bound))
        tags = [] if tag is None else [column(tag, batch, "")[:batch, 0]]
        with tf.control_dependencies(
            [tf.Assert(has_beam, ["constraints need a beam_size of 2 or more:", beams])]
        ):
            options = [columns[name][:batch, 0] for name in settings._fields]
        found = (
            self._free(*(tf.gather(x, free) for x in (inputs, *options, *tags))),
            self._bound(*(tf.gather(x, bound) for x in (inputs, phrases, avoided, *options, *tags))),
        )
        order = tf.math.invert_permutation(tf.cast(tf.concat([free, bound], axis=0), tf.int32))
        width = tf.reduce_max([tf.shape(one["scores"])[1] for one in found])
        fillers: dict[str, str | float] = {"outputs": "", "scores": NO_OUTPUT}
        return {
            name: tf.gather(
                tf.concat([_wide(one[name], width, fillers.get(name)) for one in found], 0), order
            )
            for name in found[0]
        }

    def _bound(self, inputs: tf.Tensor, phrases: tf.Tensor, avoid: tf.Tensor, *options: tf.Tensor) -> Outputs:
        """Translates the lines that have phrases, of which there may be none."""
        batch = tf.shape(inputs)[0]
        settings = SearchSettings(*(column(x, batch) for x in options[: len(SearchSettings._fields)]))
        tags = options[len(settings) :]
        prefixes = self._prefixes(tags[0], batch) if self._prefixes else None
        rows = tf.cast(batch == 0, tf.int32)  # the line that stands in
        phrases, avoid = (tf.pad(x, [[0, rows], [0, 0]]) for x in (phrases, avoid))
        search = partial(self._find, phrases=phrases, avoid=avoid, settings=settings)
        return self._translate(search, inputs, prefixes)

    def _find(
        self, sources: tf.Tensor, phrases: tf.Tensor, avoid: tf.Tensor, settings: SearchSettings
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Searches for the outputs of lines; a blank one has no phrases."""
        exists = tf.reduce_any(sources != PAD, axis=1, keepdims=True)
        phrases, avoid = (tf.where(exists, x, "") for x in (phrases, avoid))
        return self._search(sources, phrases, avoid, settings)


def _wide(rows: tf.Tensor, width: tf.Tensor, filler: str | float | None) -> tf.Tensor:
    """Returns values, [lines, n], padded to a width; without a filler, unchanged."""
    if filler is None:
        return rows
    return tf.pad(rows, [[0, 0], [0, width - tf.shape(rows)[1]]], constant_values=filler)
