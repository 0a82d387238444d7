"""The table of what goes with what in decoding: what each engine, format and kind of model supports.

All of it is allow-lists: a new setting, hyperparameter of models or value is refused everywhere until it is
tried there and listed. A feature is a setting of `DecodeHParams` by its name, where it has not its default,
or one of `OF_CALLS`. The page of the documentation is made of these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from t2t_revival.decoding.hypothesis_scores import ALPHA, NORMALIZE
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams, variants
from t2t_revival.hparams.variants import VARIANTS, variant_of

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem

OF_CALLS = {  # features that are no settings, as people call them
    "greedy": "beam_size=1",
    "n": "more than one output",
    "prefixes": "forced beginnings",
    "constraints": "constraints",
    "scores": "scores of given outputs",
    "annotations": "details of given outputs",
    "ensemble": "an ensemble",
    "int8": "int8",
}
COLUMNS = frozenset({"return_beams", "n", "write_beam_scores"})
LIMITS = frozenset({"beam_size", "greedy", "extra_length", "early_stopping", "batch_size"})
SEARCH = LIMITS | COLUMNS | {"tag", "tokenized", ALPHA, NORMALIZE}
READ = frozenset({"unicode_form"})  # how lines are read
SAMPLING = frozenset({"sampling_method", "sampling_temp", "sampling_keep_top_k", "random_seed"})
REPETITION = frozenset({"no_repeat_ngram_size", "repetition_penalty", "max_length_ratio"})
GUARDS = REPETITION | {"min_length_ratio"}
CHOICE = frozenset({"mbr", "candidates"})
SCORED = frozenset({"token_scores", "alternatives"})
DETAILS = SCORED | {"alignments"}
OF_ATTENTION = frozenset({"coverage_penalty", "alignments", "markup"})
OF_TEXT = frozenset({"split_sentences", "prefixes", "constraints"})  # not of trees, nor markup
GIVEN = frozenset({"scores", "annotations"})
MODELS = frozenset({"constrained", "ensemble"})  # trees; several models
DECODING = SEARCH | READ | SAMPLING | GUARDS | CHOICE

EXCLUDE = {  # features, and those that they cannot be combined with
    "constrained": GUARDS | SCORED | OF_ATTENTION | OF_TEXT | {"mbr"},
    "sampling_method": {"early_stopping", "coverage_penalty", "split_sentences", "constraints"},
    "coverage_penalty": {"greedy", "mbr"},
    "split_sentences": DETAILS | {"return_beams", "n", "prefixes", "constraints"},
    "markup": DETAILS | {"return_beams", "n", "prefixes", "constraints"},
    "constraints": {"greedy", "mbr", "prefixes"},
}
NEEDS = dict.fromkeys(SAMPLING - {"sampling_method"}, "sampling_method=random") | {"candidates": "mbr"}


@dataclass(frozen=True, eq=False)
class Place:
    """An engine, a format, a kind of model or of file, or a request, and the features that it supports.

    Attributes:
        name: as people call it.
        features: that it supports.
        remedy: what to do about others.
        remedies: what to do about some of these.
        exclude: as `EXCLUDE`, of this place alone.
        holds: where it has a model of its own, what `Variant.held_by` calls it.
    """

    name: str
    features: Set[str]
    remedy: str = "leave it out"
    remedies: Mapping[str, str] = field(default_factory=dict)
    exclude: Mapping[str, Set[str]] = field(default_factory=dict)
    holds: str = ""

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
TENSORFLOW = Place(
    "TensorFlow",
    DECODING | DETAILS | OF_ATTENTION | OF_TEXT | GIVEN | MODELS,
    remedies=OF_CTRANSLATE2 | OF_INT8,
)
JAX = Place(
    "decoding on JAX",
    SEARCH | READ | CHOICE | {"split_sentences", "constrained", "ensemble"},
    "set KERAS_BACKEND=tensorflow",
    OF_INT8,
    holds=variants.JAX,
)
CTRANSLATE2 = Place(
    "CTranslate2",
    SEARCH
    | READ
    | REPETITION
    | CHOICE
    | OF_ATTENTION
    | GIVEN
    | {"token_scores", "split_sentences", "prefixes", "shortlist", "int8"},
    "use --engine=tensorflow",
    exclude={"coverage_penalty": {"alignments", "markup"}},  # it returns the attention of one set of heads
    holds=variants.CTRANSLATE2,
)

# Kinds of models.
ENSEMBLE = Place(
    "an ensemble",
    DECODING | SCORED | OF_TEXT | GIVEN | MODELS,
    "leave the model out",
    dict.fromkeys(OF_ATTENTION, "it needs the attention of one model, so leave one of them out")
    | {"shortlist": "leave it out"},
    holds=variants.ENSEMBLE,
)
NO_SELF_ATTENTION = Place(
    "a decoder without self-attention", DECODING | SCORED | OF_TEXT | GIVEN | MODELS | {"int8"}
)
PARSER = Place(
    "a parser",
    DECODING | DETAILS | GIVEN | MODELS | {"coverage_penalty", "shortlist", "int8"},
)

# Exports: their own settings, and requests to a SavedModel by t2t-query-server and t2t-server.
DECODE = "leave it out, or decode with t2t-decoder"
OF_DECODER = OF_CTRANSLATE2 | dict.fromkeys(
    SAMPLING | CHOICE | DETAILS | OF_ATTENTION | {"split_sentences"}, DECODE
)
SAVED_MODEL = Place(
    "a SavedModel",
    SEARCH | READ | GUARDS | MODELS,
    "decode with t2t-decoder",
    OF_CTRANSLATE2
    | {
        "sampling_method": "leave it out, and give it to t2t-query-server",
        "int8": "give --quantize=int8_weights or bfloat16, or --format=ctranslate2",
    },
    holds=variants.SAVED_MODEL,
)
REQUEST = Place(
    "a request to an exported model",
    SEARCH - {"early_stopping", "batch_size", NORMALIZE}
    | READ
    | SAMPLING
    | CHOICE
    | DETAILS
    | GIVEN
    | OF_TEXT
    | {"markup", "ensemble"},
    DECODE,
    {
        **dict.fromkeys(GUARDS | {"constrained", "early_stopping", NORMALIZE}, "give it to t2t-exporter"),
        "batch_size": "give --batch_size, in lines",
    },
)
LITERT = Place(
    "LiteRT's format",
    SEARCH - {"tag"} | {"int8"},
    "give --format=saved_model",
    OF_DECODER,
    holds=variants.LITERT,
)
CTRANSLATE2_FORMAT = Place(
    "CTranslate2's format",
    SEARCH | {"constrained", "shortlist", "int8"},
    "give --format=saved_model",
    OF_DECODER | dict.fromkeys(GUARDS, "leave it out, and give it to each call of translate_batch"),
    holds=variants.CTRANSLATE2,
)

OF_MODELS_ALONE = OF_DECODER | dict.fromkeys(
    GUARDS | SEARCH | {"constrained", "ensemble", "int8"}, "leave it out"
)
TRANSFORMERS_FORMAT = Place(
    "transformers' format",
    SEARCH - {"tag"},
    "it holds models such as marian_base, which t2t-distill makes of others; or give --format=saved_model",
    OF_MODELS_ALONE,
    holds=variants.TRANSFORMERS,
)

ARGOS_FORMAT = Place(
    "Argos Translate's format",
    SEARCH - {"tag"} | {"int8"},
    "give --format=ctranslate2",
    OF_DECODER,
    holds=variants.CTRANSLATE2,
)

BERGAMOT_FORMAT = Place(
    "bergamot's format",
    {"beam_size", "greedy", ALPHA, NORMALIZE, "shortlist", "int8"},
    "it holds models such as marian_tiny, which t2t-distill makes of others; or give --format=saved_model",
    OF_MODELS_ALONE,
    holds=variants.MARIAN,
)

# What is written, and what draws.
ONE_OUTPUT = DECODING - COLUMNS | OF_TEXT | MODELS | {"coverage_penalty", "markup", "shortlist"}
TRANSLATIONS = Place("a file with one translation a line", ONE_OUTPUT)
SCORE_LINES = Place("a line of text", ONE_OUTPUT | COLUMNS | GIVEN, "give --output_format=jsonl")
TEXT_LINES = Place("a line of text", SCORE_LINES.features | {"alignments"}, "give --output_format=jsonl")
ATTENTION_PAGE = Place(
    "t2t-attention", SEARCH | READ | SAMPLING | GUARDS | DETAILS | MODELS | {"coverage_penalty", "shortlist"}
)


TABLES = {  # of the documentation
    "Engines": (TENSORFLOW, JAX, CTRANSLATE2),
    "Models": (ENSEMBLE, NO_SELF_ATTENTION, PARSER),
    "Exports, and requests to them": (
        SAVED_MODEL,
        REQUEST,
        LITERT,
        CTRANSLATE2_FORMAT,
        TRANSFORMERS_FORMAT,
        ARGOS_FORMAT,
        BERGAMOT_FORMAT,
    ),
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
        for feature, written in asked.items():
            if feature not in place.features:
                raise place.refusal(feature, written)
    for pairs in (EXCLUDE, *(place.exclude for place in places)):
        for feature, excluded in pairs.items():
            others = [written for other, written in asked.items() if other in excluded]
            if feature in asked and others:
                raise T2TError(f"{asked[feature]} cannot be combined with {others[0]}: leave one of them out")


def check_effects(asked: Mapping[str, str]) -> None:
    """Raises T2TError for a setting that has no effect without another."""
    for feature, needed in NEEDS.items():
        if feature in asked and needed.partition("=")[0] not in asked:
            raise T2TError(f"{asked[feature]} has no effect without {needed}: leave it out")


def places_of(hparams: HParams, problem: Problem | None = None) -> list[Place]:
    """Returns the kinds that a model of a problem is of."""
    kinds = {
        NO_SELF_ATTENTION: hparams.decoder_self_attention != "attention",
        PARSER: problem is not None and problem.separates_words,
    }
    return [place for place, is_so in kinds.items() if is_so]


def check_held(hparams: HParams, holder: Place) -> None:
    """Checks that an engine or a format can hold a model.

    A hyperparameter that `VARIANTS` lacks must have its default, which is that of models that were trained
    before there was such a hyperparameter.

    Args:
        hparams: of the model.
        holder: a place that `holds` models.

    Raises:
        T2TError: it cannot; names the hyperparameter.
    """
    for hparam in fields(hparams):
        if not hparam.metadata["about"].model:
            continue
        name, value = hparam.name, getattr(hparams, hparam.name)
        row = variant_of(name, value)
        if not (holder.holds in row.held_by if row else name not in VARIANTS and value == hparam.default):
            raise T2TError(
                f"{holder.name} does not support {name}={value}, which this model has: {holder.remedy}"
            )
