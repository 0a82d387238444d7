"""Formats of exports: a row is all that a format needs beside its own module."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.decoding import capabilities
from t2t_revival.decoding.capabilities import DECODE, OF_CTRANSLATE2, OF_LINES, SAVED_MODEL, Place
from t2t_revival.decoding.combinations import DETAILS, GUARDS, OF_ATTENTION, SAMPLING
from t2t_revival.decoding.holders import Holder
from t2t_revival.decoding.options import SETTINGS
from t2t_revival.hparams import HParams, variants

if TYPE_CHECKING:
    from t2t_revival.serving.export import Export

PACKAGE = "t2t_revival."
OF_DECODER = OF_CTRANSLATE2 | dict.fromkeys(
    DETAILS
    | OF_ATTENTION
    | OF_LINES
    | {"sampling_method", *SAMPLING, "mbr", "candidates", "split_sentences"},
    DECODE,
)
OF_MODELS_ALONE = dict.fromkeys([*SETTINGS, "n", "ensemble", "int8"], "leave it out") | OF_DECODER
GIVE_SAVED_MODEL = "give --format=saved_model"
LIKE = "it holds models such as {}, which t2t-distill makes of others; or " + GIVE_SAVED_MODEL


@dataclass(frozen=True)
class Format:
    """A format of exports.

    Attributes:
        place: the settings and the models that it holds.
        other_place: that of models of another kind, which it holds too.
        quantizations: the values of `--quantize` that it has, the default first.
        exporter: the function that writes a version, as "module:function".
        meaning: what it is for.
    """

    place: Place
    quantizations: tuple[str, ...]
    exporter: str
    meaning: str
    other_place: Place | None = None

    def place_of(self, hparams: HParams) -> Place:
        """Returns the place that holds a model, or the one that lacks the least of it."""
        places = [self.place, *([self.other_place] if self.other_place else [])]
        return min(places, key=lambda place: len(hparams.not_held_by(place.holds)))

    @property
    def export(self) -> Callable[[Export], tuple[Path, str]]:
        """The function that writes a version; it returns the version's folder, and what to do next.

        It does not check that the format's place holds the model and its settings.
        """
        return pkgutil.resolve_name(PACKAGE + self.exporter)


DEFAULT = "saved_model"
FORMATS = {
    DEFAULT: Format(
        SAVED_MODEL,
        ("none", "bfloat16", "int8_weights"),
        "serving.export:export_saved_model",
        "for TensorFlow Serving and t2t-server",
    ),
    "litert": Format(
        Place(Holder.LITERT, "LiteRT's format", GIVE_SAVED_MODEL, remedies=OF_DECODER, holds=variants.LITERT),
        ("none", "int8"),
        "addons.litert:export_litert",
        "for phones, embedded devices, and single lines on CPUs",
    ),
    "ctranslate2": Format(
        Place(
            Holder.CTRANSLATE2_FORMAT,
            "CTranslate2's format",
            GIVE_SAVED_MODEL,
            OF_DECODER
            | dict.fromkeys(
                GUARDS | {"return_beams"}, "leave it out, and give it to each call of translate_batch"
            ),
            holds=variants.CTRANSLATE2,
        ),
        ("none", "bfloat16", "int8"),
        "addons.ctranslate2.format:export_ctranslate2",
        "for the engine of that name, whose package it needs",
    ),
    "transformers": Format(
        Place(
            Holder.TRANSFORMERS_FORMAT,
            "transformers' format",
            LIKE.format("marian_base"),
            OF_MODELS_ALONE,
            holds=variants.TRANSFORMERS,
        ),
        ("none",),
        "addons.transformers_format:export_transformers",
        "a folder of MarianMT or M2M100 for the Hugging Face Hub",
        Place(
            Holder.TRANSFORMERS_FORMAT,
            "transformers' M2M100",
            GIVE_SAVED_MODEL,
            OF_MODELS_ALONE,
            holds=variants.M2M100,
        ),
    ),
    "argos": Format(
        Place(
            Holder.ARGOS_FORMAT,
            "Argos Translate's format",
            "give --format=ctranslate2",
            OF_DECODER | {"return_beams": DECODE, "early_stopping": DECODE},
            holds=variants.CTRANSLATE2,
        ),
        ("none", "bfloat16", "int8"),
        "addons.argos_format:export_argos",
        "a package for Argos Translate and LibreTranslate",
    ),
    "marian": Format(
        Place(
            Holder.MARIAN_FORMAT,
            "Marian's format",
            LIKE.format("marian_base"),
            OF_MODELS_ALONE,
            holds=variants.MARIAN,
        ),
        ("none",),
        "addons.marian_format:export_marian",
        "a folder for marian-decoder",
    ),
    "bergamot": Format(
        Place(
            Holder.BERGAMOT_FORMAT,
            "bergamot's format",
            LIKE.format("marian_tiny"),
            OF_MODELS_ALONE,
            holds=variants.BERGAMOT,
        ),
        ("int8",),
        "addons.bergamot_format:export_bergamot",
        "a model for browsers, by WebAssembly",
    ),
}
_OTHERS = (row.place for row in FORMATS.values() if row.place is not SAVED_MODEL)
TABLES = {  # of the documentation
    **capabilities.TABLES,
    "Exports, and requests to them": (SAVED_MODEL, capabilities.REQUEST, *_OTHERS),
}
