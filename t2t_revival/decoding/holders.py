"""Holders of settings of decoding, and groups of them; `capabilities` describes each."""

from __future__ import annotations

from enum import Enum, auto


class Holder(Enum):
    """An engine, a kind of model, an export, a request to one, or what is written."""

    TENSORFLOW = auto()
    JAX = auto()
    CTRANSLATE2 = auto()

    ENSEMBLE = auto()
    NO_SELF_ATTENTION = auto()
    PARSER = auto()

    SAVED_MODEL = auto()
    REQUEST = auto()
    LITERT = auto()
    CTRANSLATE2_FORMAT = auto()
    TRANSFORMERS_FORMAT = auto()
    ARGOS_FORMAT = auto()
    MARIAN_FORMAT = auto()
    BERGAMOT_FORMAT = auto()

    TRANSLATIONS = auto()
    SCORE_LINES = auto()
    TEXT_LINES = auto()
    ATTENTION_PAGE = auto()


TENSORFLOW, JAX, CTRANSLATE2 = Holder.TENSORFLOW, Holder.JAX, Holder.CTRANSLATE2
ENSEMBLE, NO_SELF_ATTENTION, PARSER = Holder.ENSEMBLE, Holder.NO_SELF_ATTENTION, Holder.PARSER
SAVED_MODEL, REQUEST, PAGE = Holder.SAVED_MODEL, Holder.REQUEST, Holder.ATTENTION_PAGE
LITERT = Holder.LITERT
CTRANSLATE2_FORMAT, BERGAMOT = Holder.CTRANSLATE2_FORMAT, Holder.BERGAMOT_FORMAT
MARIAN = Holder.MARIAN_FORMAT
TRANSLATIONS, SCORE_LINES, TEXT_LINES = Holder.TRANSLATIONS, Holder.SCORE_LINES, Holder.TEXT_LINES

# A new holder is in none of these, so that it refuses every setting until the setting has been tried there.
KINDS = frozenset({ENSEMBLE, NO_SELF_ATTENTION, PARSER})
LINES = frozenset({TRANSLATIONS, SCORE_LINES, TEXT_LINES})
FORMATS = frozenset(
    {LITERT, CTRANSLATE2_FORMAT, Holder.TRANSFORMERS_FORMAT, Holder.ARGOS_FORMAT, MARIAN, BERGAMOT}
)
OWN_SEARCH = KINDS | LINES | {TENSORFLOW, PAGE}  # TensorFlow's, with what it decodes and writes
READING = OWN_SEARCH | {JAX, CTRANSLATE2, SAVED_MODEL, REQUEST}
EVERYWHERE = READING | FORMATS
CHOOSING = KINDS | LINES | {TENSORFLOW, JAX, CTRANSLATE2, REQUEST}
