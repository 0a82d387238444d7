"""`DecodeHParams`: settings of decoding (T2T's `--decode_hparams`); names of engines."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from t2t_revival.decoding import holders
from t2t_revival.decoding.combinations import (
    LENGTHS_AND_REPETITION,
    OF_CALLS,
    check_combinations,
    check_effects,
)
from t2t_revival.decoding.hypothesis_scores import LARGEST, PENALTIES, TERMS
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.hparams.hparams import parse_overrides, type_faults
from t2t_revival.utils.unicode_forms import FORMS

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem

T = TypeVar("T")
BEAM, SAMPLING = "beam search", "sampling"  # ways of decoding
ARGMAX, RANDOM = "argmax", "random"
MAX_CANDIDATES = MAX_ALTERNATIVES = 100
MIN_EXTRA_LENGTH_OF_TREE = 2  # (TOP XX )TOP EOS has two tokens more than a word and EOS
WIDE = 64  # beam_size^2 from which batches are smaller, since each hypothesis attends to the keys of all
AUTO_BATCH = "batch_size=auto"
AUTO = re.compile(rf"\b{AUTO_BATCH}(?=\s*(,|$))")
MIN_USUAL_BATCH_SIZE = 256  # a lower batch_size is probably meant in sentences, as in T2T
UNLIMITED = 512  # an extra_length that is no limit beside max_length_factor
TOKENS_PER_SENTENCE = 32  # input tokens of a usual sentence
OFF, ON = "off", "on"  # values of shortlist
ENGINES = TENSORFLOW, CTRANSLATE2 = "tensorflow", "ctranslate2"
JAX = "jax"  # decodes where the engine is TensorFlow, and Keras's backend is JAX
PRECISIONS = FLOAT32, BFLOAT16, INT8 = "float32", "bfloat16", "int8"
MIXED_BFLOAT16 = "mixed_bfloat16"  # of an export whose weights are int8
MEANS = PROBABILITIES, LOGARITHMS = "probabilities", "logarithms"  # of an ensemble
UTILITIES = CHRF, BLEU = "chrf", "bleu"  # of minimum Bayes risk
NUMBERS = "+numbers"
HTML, PLACEHOLDERS = "html", "placeholders"
MARKUP = tuple(kind + numbers for kind in (HTML, PLACEHOLDERS) for numbers in ("", NUMBERS))
PHARAOH = "pharaoh"  # format of alignments


class Role(Enum):
    """Roles of settings in a request to an exported model."""

    INPUT = "input"  # an input of the model's signatures, of each line
    CHOICE = "choice"  # decides what the model is asked for
    TEXT = "text"  # of the client's way from lines to inputs, and from outputs to lines
    COLUMN = "column"  # of what the client writes


@dataclass(frozen=True)
class Setting:
    """All that is known of a setting besides its name, type and default.

    Attributes:
        meaning: for the docs.
        held_by: engines, kinds of models, exports and outputs in which it was tried; all others refuse it.
        least: smallest valid number; `None` here and below sets no bound. The default is always valid.
        most: largest valid number.
        choices: texts that are valid beside the default; empty allows any.
        request: what it is in a request; `None` where it is refused.
        searches: the ways of decoding in which it is an input.
    """

    meaning: str
    held_by: frozenset[holders.Holder] = frozenset()
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    request: Role | None = None
    searches: frozenset[str] = frozenset({BEAM, SAMPLING})


def setting(
    default: T,
    meaning: str,
    held_by: frozenset[holders.Holder],
    least: float | None = None,
    most: float | None = None,
    **details: Any,
) -> T:
    """Returns a field of `DecodeHParams`; arguments are those of `Setting`."""
    about = Setting(meaning, held_by, least, most, **details)
    return dataclasses.field(default=default, metadata={"about": about})


@dataclass(frozen=True)
class DecodeHParams:
    """Settings of decoding. Names are T2T's, defaults the paper's for translation (section 6.1)."""

    beam_size: int = setting(
        4,
        "hypotheses kept at each position, 1 is greedy; maximum number of samples",
        holders.EVERYWHERE,
        1,
        100,
        request=Role.INPUT,
        searches=frozenset({BEAM}),
    )
    alpha: float = setting(
        0.6, "exponent of the length penalty", holders.EVERYWHERE, -LARGEST, LARGEST, request=Role.INPUT
    )
    normalize: float = setting(
        0.0,
        "exponent of the length by which scores are divided, as in Marian",
        holders.EVERYWHERE - {holders.REQUEST},
        -LARGEST,
        LARGEST,
    )
    extra_length: int = setting(
        50,
        "maximum number of tokens that an output has more than its input",
        holders.EVERYWHERE - {holders.MARIAN, holders.BERGAMOT},
        0,
        10_000,  # far beyond, there is not enough memory
        request=Role.INPUT,
    )
    batch_size: int = setting(
        2048,
        "input tokens decoded at once, padding included (in T2T: sentences); auto measures the fastest",
        holders.CHOOSING - {holders.REQUEST},
        0,
    )
    return_beams: bool = setting(
        False,
        "return all beam_size outputs instead of the best",
        holders.CHOOSING - {holders.TRANSLATIONS} | {holders.SAVED_MODEL, holders.LITERT},
        request=Role.CHOICE,
    )
    write_beam_scores: bool = setting(
        False,
        "write each output's score after it",
        holders.CHOOSING - {holders.TRANSLATIONS},
        request=Role.COLUMN,
    )
    constrained: bool = setting(
        False,
        "parsing: produce only trees over the words of the sentence",
        holders.OWN_SEARCH | {holders.JAX, holders.SAVED_MODEL, holders.CTRANSLATE2_FORMAT},
    )
    tokenized: bool = setting(
        False,
        "parsing: inputs are split into words and punctuation, as in treebanks",
        holders.CHOOSING | {holders.PAGE},
        request=Role.TEXT,
    )
    sampling_method: str = setting(
        ARGMAX,
        "argmax: beam search; random: sampling",
        holders.CHOOSING - {holders.JAX, holders.CTRANSLATE2},
        choices=(ARGMAX, RANDOM),
        request=Role.CHOICE,
    )
    sampling_temp: float = setting(
        1.0,
        "random: divides logits; near 0, the best token is always drawn",
        holders.CHOOSING - {holders.JAX, holders.CTRANSLATE2},
        0.001,  # between these, logits stay finite
        1000.0,
        request=Role.INPUT,
        searches=frozenset({SAMPLING}),
    )
    sampling_keep_top_k: int = setting(
        -1,
        "random: draw from the k most probable tokens; -1 draws from all",
        holders.CHOOSING - {holders.JAX, holders.CTRANSLATE2},
        1,
        request=Role.INPUT,
        searches=frozenset({SAMPLING}),
    )
    random_seed: int = setting(
        0,
        "random: sampling seed; equal seeds give equal outputs",
        holders.CHOOSING - {holders.JAX, holders.CTRANSLATE2},
        0,
        request=Role.INPUT,
        searches=frozenset({SAMPLING}),
    )
    early_stopping: bool = setting(
        False,
        "stop a sentence as soon as no better output is likely, not impossible",
        holders.OWN_SEARCH | {holders.JAX, holders.SAVED_MODEL, holders.LITERT},
    )
    tag: str = setting(
        "",
        "before each line, as in the training data; see docs/guides/mixing.md",
        holders.READING,
        request=Role.TEXT,
    )
    no_repeat_ngram_size: int = setting(
        0,
        "no n-gram of so many tokens occurs twice; 0 is off",
        holders.OWN_SEARCH | {holders.CTRANSLATE2, holders.SAVED_MODEL},
        0,
        100,
    )
    repetition_penalty: float = setting(
        1.0,
        "makes tokens that the output has already less probable; 1 is off",
        holders.OWN_SEARCH | {holders.CTRANSLATE2, holders.SAVED_MODEL},
        0.01,
        100,
    )
    min_length_ratio: float = setting(
        0.0,
        "tokens of an output at least, by those of its input",
        holders.OWN_SEARCH | {holders.SAVED_MODEL},
        0,
        10,
    )
    max_length_ratio: float = setting(
        0.0,
        "tokens at most; 0 is off",
        holders.OWN_SEARCH | {holders.CTRANSLATE2, holders.SAVED_MODEL},
        0,
        1000,
    )
    max_length_factor: float = setting(
        0.0,
        "tokens at most, the ends of output and input counted, as in Marian; 0 is off",
        holders.READING - {holders.REQUEST} | {holders.LITERT, holders.MARIAN, holders.BERGAMOT},
        0,
        1000,
    )
    coverage_penalty: float = setting(
        0.0,
        "beta of Wu et al. (2016): prefers outputs that attend to all of the input",
        holders.LINES | {holders.TENSORFLOW, holders.CTRANSLATE2, holders.PARSER},
        0,
        100,
    )
    mbr: str = setting(
        "",
        "chrf, bleu: of several candidates, the one most like the others by this measure",
        holders.CHOOSING,
        choices=UTILITIES,
        request=Role.CHOICE,
    )
    candidates: int = setting(
        32,
        "mbr: samples, or without sampling the best outputs of a beam as wide",
        holders.CHOOSING,
        2,
        MAX_CANDIDATES,
        request=Role.CHOICE,
    )
    split_sentences: bool = setting(
        False,
        "translate each sentence of a line for itself",
        holders.CHOOSING - {holders.PARSER},
        request=Role.TEXT,
    )
    markup: str = setting(
        "",
        "html, placeholders, or with +numbers: tags and placeholders come out as they are",
        holders.LINES | {holders.TENSORFLOW, holders.CTRANSLATE2, holders.REQUEST},
        choices=MARKUP,
        request=Role.TEXT,
    )
    alignments: str = setting(
        "",
        "pharaoh: after each output, which of its words translates which of the input",
        frozenset(
            {holders.TENSORFLOW, holders.CTRANSLATE2, holders.PARSER, holders.REQUEST, holders.TEXT_LINES}
        ),
        choices=(PHARAOH,),
        request=Role.COLUMN,
    )
    token_scores: bool = setting(
        False,
        "t2t-decoder --output_format=jsonl: log-probabilities of tokens and words",
        holders.KINDS | {holders.TENSORFLOW, holders.CTRANSLATE2, holders.REQUEST},
        request=Role.COLUMN,
    )
    alternatives: int = setting(
        0,
        "jsonl: number of most probable tokens that are listed for each position",
        holders.KINDS | {holders.TENSORFLOW, holders.REQUEST},
        0,
        MAX_ALTERNATIVES,
        request=Role.COLUMN,
    )
    unicode_form: str = setting(
        "",
        "nfc, nfd: Unicode's form into which text is brought before it is cut into pieces",
        holders.READING,
        choices=FORMS,
        request=Role.TEXT,
    )
    shortlist: str = setting(
        OFF,
        "on: with CTranslate2, only tokens that may translate the batch's lines",
        holders.LINES
        | {holders.CTRANSLATE2, holders.PARSER, holders.CTRANSLATE2_FORMAT, holders.BERGAMOT, holders.PAGE},
        choices=(OFF, ON),
    )

    def __post_init__(self) -> None:
        for fault in type_faults(self):
            raise T2TError(f"decode_hparams: {fault}")
        self._check_bounds()
        self._check_relations()
        asked = self.asked()
        check_combinations(asked)
        check_effects(asked)

    def _check_bounds(self) -> None:
        """Rejects values out of bounds; a default, which may say that a setting is off, is always in."""
        for name, about in SETTINGS.items():
            value, default = getattr(self, name), getattr(type(self), name)
            if about.least is not None:
                least, most = about.least, math.inf if about.most is None else about.most
                limits = f"between {least} and {most}" if most < math.inf else f"at least {least}"
                off = "" if least <= default <= most else f", or {default}"
                _require(least <= value <= most or value == default, f"{name}={value} must be {limits}{off}")
            known = (default, *about.choices)
            _require(
                value in known or not about.choices, f"{name}={value} must be {' or '.join(about.choices)}"
            )

    def _check_relations(self) -> None:
        """Rejects values that do not fit other values."""
        _require(not re.search(r"\s", self.tag), f"tag={self.tag!r} must not have spaces")
        least = MIN_EXTRA_LENGTH_OF_TREE if self.constrained else 0
        fault = f"extra_length={self.extra_length} must be at least {least} with constrained=True"
        _require(self.extra_length >= least, fault)
        shortest, longest = self.min_length_ratio, self.max_length_ratio
        fits = shortest <= longest or not longest
        _require(fits, f"min_length_ratio={shortest} must be at most max_length_ratio={longest}")
        fits = not self.mbr or self.beam_size <= self.candidates
        _require(fits, f"candidates={self.candidates} must be at least beam_size={self.beam_size}")

    def asked(
        self, of_call: Mapping[str, object] | None = None, beside: DecodeHParams | None = None
    ) -> dict[str, str]:
        """Returns what these settings ask for, for `capabilities.check`: features as written, by name.

        Args:
            of_call: by name, whether a call asks for what `OF_CALLS` has too.
            beside: settings that ask for nothing. `None` are the defaults.
        """
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        usual = beside or type(self)
        asked = {name: f"{name}={value}" for name, value in values.items() if value != getattr(usual, name)}
        if self.max_length_factor and self.extra_length >= UNLIMITED:
            asked.pop("extra_length", None)
        more = {"greedy": self.beam_size == 1, **(of_call or {})}
        return asked | {name: OF_CALLS[name] for name, given in more.items() if given}

    @property
    def tokens_at_once(self) -> int:
        """Input tokens of a batch: fewer with a wide beam."""
        return self.batch_size // max(self.candidates_of(self.beam_size) ** 2 // WIDE, 1)

    def candidates_of(self, outputs: int) -> int:
        """Returns how many outputs must be found to return some of them: as many, or more to choose from."""
        if self.mbr:
            return self.candidates
        return self.beam_size if self.coverage_penalty else outputs

    def spare_of(self, outputs: int) -> int:
        """Returns how many outputs more fill a list in which texts are equal; no choice is among them."""
        chooses = self.mbr or self.coverage_penalty or self.samples
        return 0 if chooses or outputs == 1 else outputs

    @property
    def guards(self) -> dict[str, Any]:
        """The settings against repeated, too short and too long outputs that are not off, by name."""
        return {name: getattr(self, name) for name in LENGTHS_AND_REPETITION & self.asked().keys()}

    @property
    def penalties(self) -> dict[str, float]:
        """The settings of penalties that are not off, by name; see `hypothesis_scores.PENALTIES`."""
        return {name: float(getattr(self, name)) for name in PENALTIES if name in self.asked()}

    @property
    def score_terms(self) -> dict[str, float]:
        """The settings of the terms that the score has, by name; see `hypothesis_scores.TERMS`."""
        settings = {term.name: float(getattr(self, term.name)) for term in TERMS}
        return {name: value for name, value in settings.items() if value}

    @property
    def details(self) -> bool:
        """True if details of outputs are asked for."""
        return bool(self.alignments or self.token_scores or self.alternatives)

    @property
    def aligns(self) -> bool:
        """True if words are aligned, for their own sake or to put marks back."""
        return bool(self.alignments or self.markup)

    @property
    def has_shortlist(self) -> bool:
        """True if outputs are made of the tokens of a shortlist."""
        return self.shortlist == ON

    @property
    def has_columns(self) -> bool:
        """True if output lines have several columns, separated by tabs."""
        return self.return_beams or self.write_beam_scores or bool(self.alignments)

    @property
    def of_texts(self) -> dict[str, Any]:
        """The settings on which the text of the best outputs depends, by name."""
        others = ("return_beams", "write_beam_scores", "batch_size")
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in others}

    @property
    def batch_size_warning(self) -> str | None:
        """Warning if `batch_size` seems to count sentences, as in T2T; else `None`."""
        if self.batch_size >= MIN_USUAL_BATCH_SIZE or not self.batch_size:
            return None
        tokens = max(MIN_USUAL_BATCH_SIZE, TOKENS_PER_SENTENCE * self.batch_size)
        return (
            f"decode_hparams: batch_size={self.batch_size} counts input tokens here, not sentences as in "
            f"tensor2tensor, so that decoding is slow: give batch_size={tokens} for about "
            f"{tokens // TOKENS_PER_SENTENCE} usual sentences, or leave it out ({type(self).batch_size})"
        )

    @property
    def samples(self) -> bool:
        """True if outputs are drawn instead of searched for."""
        return self.sampling_method == RANDOM

    @property
    def outputs(self) -> int:
        """Number of outputs of each input."""
        return self.beam_size if self.return_beams else 1

    @classmethod
    def from_problem(cls, problem: Problem) -> DecodeHParams:
        """Returns the problem's own settings."""
        return cls.parse("", problem.decode_hparams())

    @classmethod
    def parse(cls, text: str, defaults: Mapping[str, Any] | None = None) -> DecodeHParams:
        """Parses settings such as "beam_size=4,alpha=0.6,return_beams=True".

        Args:
            text: overrides; may be empty.
            defaults: the problem's own settings (`Problem.decode_hparams`).

        Raises:
            T2TError: a name is unknown (the nearest is suggested) or given twice, or a value is invalid.
        """
        types = {field.name: field.type for field in dataclasses.fields(cls)}
        text = AUTO.sub("batch_size=0", text) if isinstance(text, str) else text
        if unknown := [name for name in defaults or {} if name not in types]:
            raise T2TError(
                f"decode_hparams of the problem: {did_you_mean(unknown[0], types, 'decode_hparam')}"
            )
        try:
            return cls(**{**(defaults or {}), **parse_overrides(text, types)})
        except (T2TError, TypeError) as error:
            raise T2TError(f"decode_hparams: {str(error).removeprefix('decode_hparams: ')}") from error


SETTINGS: dict[str, Setting] = {
    field.name: field.metadata["about"] for field in dataclasses.fields(DecodeHParams)
}


def _require(condition: bool, fault: str) -> None:
    if not condition:
        raise T2TError(f"decode_hparams: {fault}")
