"""The table of what goes with what in decoding: what each engine, format and kind of model supports.

All of it is allow-lists: a new setting, hyperparameter of models or value is refused everywhere until it is
tried there and its row names the place. A feature is a setting of `DecodeHParams` by its name, where it has
not its default, or one of `OF_CALLS`. The page of the documentation is made of these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from t2t_revival.decoding import holders
from t2t_revival.decoding.combinations import GUARDS, OF_ATTENTION, OF_CALLS, check_combinations
from t2t_revival.decoding.holders import Holder
from t2t_revival.decoding.hypothesis_scores import NORMALIZE
from t2t_revival.decoding.options import SETTINGS
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams, variants

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem

_TEXTS = holders.LINES | holders.KINDS - {holders.PARSER} | {holders.TENSORFLOW, holders.REQUEST}
_GIVEN = holders.KINDS | frozenset(
    {holders.TENSORFLOW, holders.CTRANSLATE2, holders.REQUEST, holders.SCORE_LINES, holders.TEXT_LINES}
)
OF_CALLS_HELD_BY: dict[str, frozenset[Holder]] = {  # features that are no settings, see `OF_CALLS`
    "greedy": holders.EVERYWHERE,
    "n": holders.EVERYWHERE - {holders.BERGAMOT, holders.TRANSLATIONS},
    "prefixes": _TEXTS | {holders.CTRANSLATE2},
    "constraints": _TEXTS,
    "scores": _GIVEN,
    "annotations": _GIVEN,
    "ensemble": holders.OWN_SEARCH | {holders.JAX, holders.SAVED_MODEL, holders.REQUEST},
    "int8": holders.FORMATS - {Holder.TRANSFORMERS_FORMAT}
    | {holders.CTRANSLATE2, holders.NO_SELF_ATTENTION, holders.PARSER},
}


@dataclass(frozen=True, eq=False)
class Place:
    """An engine, a format, a kind of model or of file, or a request, and the features that it supports.

    Attributes:
        holder: what `Setting.held_by` calls it; `None` holds no settings but their defaults.
        name: as people call it.
        remedy: what to do about others.
        remedies: what to do about some of these.
        exclude: as `EXCLUDE`, of this place alone.
        holds: where it has a model of its own, what `Variant.held_by` calls it.
    """

    holder: Holder | None
    name: str
    remedy: str = "leave it out"
    remedies: Mapping[str, str] = field(default_factory=dict)
    exclude: Mapping[str, Set[str]] = field(default_factory=dict)
    holds: str = ""

    @property
    def features(self) -> Set[str]:
        """The features that it supports: settings by name, and those of `OF_CALLS`."""
        of_calls = {name for name, held_by in OF_CALLS_HELD_BY.items() if self.holder in held_by}
        return of_calls | {name for name, about in SETTINGS.items() if self.holder in about.held_by}

    def refusal(self, feature: str, written: str = "") -> T2TError:
        """Returns the error of a feature that it does not support, as the user has `written` it."""
        shown = written or OF_CALLS.get(feature, feature)
        return T2TError(f"{self.name} does not support {shown}: {self.remedies.get(feature, self.remedy)}")


OF_CTRANSLATE2 = {
    "shortlist": "t2t-shortlist learns CTranslate2's vocabulary map, so use --engine=ctranslate2, or "
    "--format=ctranslate2 for an export, or leave it out"
}

OF_INT8 = {"int8": "use --engine=ctranslate2, or --precision=bfloat16"}

# Engines.
TENSORFLOW = Place(Holder.TENSORFLOW, "TensorFlow", remedies=OF_CTRANSLATE2 | OF_INT8)
JAX = Place(Holder.JAX, "decoding on JAX", "set KERAS_BACKEND=tensorflow", OF_INT8, holds=variants.JAX)
CTRANSLATE2 = Place(
    Holder.CTRANSLATE2,
    "CTranslate2",
    "use --engine=tensorflow",
    exclude={"coverage_penalty": {"alignments", "markup"}},  # it returns the attention of one set of heads
    holds=variants.CTRANSLATE2,
)

# Kinds of models.
ENSEMBLE = Place(
    Holder.ENSEMBLE,
    "an ensemble",
    "leave the model out",
    dict.fromkeys(OF_ATTENTION, "it needs the attention of one model, so leave one of them out")
    | {"shortlist": "leave it out"},
    holds=variants.ENSEMBLE,
)
NO_SELF_ATTENTION = Place(Holder.NO_SELF_ATTENTION, "a decoder without self-attention")
PARSER = Place(Holder.PARSER, "a parser")

# A SavedModel, and requests to it by t2t-query-server and t2t-server; `addons.formats` has the other exports.
DECODE = "leave it out, or decode with t2t-decoder"
OF_LINES = {"batch_size", "tokenized", "write_beam_scores"}
SAVED_MODEL = Place(
    Holder.SAVED_MODEL,
    "a SavedModel",
    "decode with t2t-decoder",
    OF_CTRANSLATE2
    | dict.fromkeys(OF_LINES | {"sampling_method"}, "leave it out, and give it to t2t-query-server")
    | {"int8": "give --quantize=int8_weights or bfloat16, or --format=ctranslate2"},
    holds=variants.SAVED_MODEL,
)
REQUEST = Place(
    Holder.REQUEST,
    "a request to an exported model",
    DECODE,
    {
        **dict.fromkeys(GUARDS | {"constrained", "early_stopping", NORMALIZE}, "give it to t2t-exporter"),
        "batch_size": "give --batch_size, in lines",
    },
)

# What is written, and what draws.
TRANSLATIONS = Place(Holder.TRANSLATIONS, "a file with one translation a line")
SCORE_LINES = Place(Holder.SCORE_LINES, "a line of text", "give --output_format=jsonl")
TEXT_LINES = Place(Holder.TEXT_LINES, "a line of text", "give --output_format=jsonl")
ATTENTION_PAGE = Place(Holder.ATTENTION_PAGE, "t2t-attention")


TABLES = {  # of the documentation
    "Engines": (TENSORFLOW, JAX, CTRANSLATE2),
    "Models": (ENSEMBLE, NO_SELF_ATTENTION, PARSER),
}


def check(asked: Mapping[str, str], *places: Place) -> None:
    """Checks that features can be combined, and that all places support them.

    Args:
        asked: the features as the user wrote them, by name; see `DecodeHParams.asked`.
        places: that decode, or are decoded.

    Raises:
        T2TError: a place does not support one of them, or two cannot be combined.
    """
    for place in places:
        features = place.features
        for feature, written in asked.items():
            if feature not in features:
                raise place.refusal(feature, written)
    check_combinations(asked)
    for place in places:
        check_combinations(asked, place.exclude)


def places_of(hparams: HParams, problem: Problem | None = None) -> list[Place]:
    """Returns the kinds that a model of a problem is of."""
    kinds = {
        NO_SELF_ATTENTION: hparams.decoder_self_attention != "attention",
        PARSER: problem is not None and problem.separates_words,
    }
    return [place for place, is_so in kinds.items() if is_so]


def check_held(hparams: HParams, holder: Place) -> None:
    """Checks that an engine or a format can hold a model.

    Args:
        hparams: of the model.
        holder: a place that `holds` models.

    Raises:
        T2TError: it cannot; names the hyperparameter.
    """
    for name, value in hparams.not_held_by(holder.holds).items():
        raise T2TError(
            f"{holder.name} does not support {name}={value}, which this model has: {holder.remedy}"
        )
