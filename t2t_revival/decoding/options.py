"""`DecodeHParams`: settings of decoding (T2T's `--decode_hparams`); names of engines."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from t2t_revival.decoding.hypothesis_scores import TERMS
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.hparams.hparams import parse_overrides, type_faults

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem

BOUNDS = (  # minimum and maximum; far beyond the maximum there is not enough memory
    ("beam_size", 1, 100),
    ("extra_length", 0, 10_000),
    ("batch_size", 1, math.inf),
)
GUARD_BOUNDS = (
    ("no_repeat_ngram_size", 0, 100),
    ("repetition_penalty", 0.01, 100),
    ("min_length_ratio", 0, 10),
    ("max_length_ratio", 0, 1000),
)
MAX_COVERAGE_PENALTY = 100
GUARDS = tuple(name for name, *_ in GUARD_BOUNDS)
MIN_EXTRA_LENGTH_OF_TREE = 2  # (TOP XX )TOP EOS has two tokens more than a word and EOS
WIDE = 64  # beam_size^2 from which batches are smaller, since each hypothesis attends to the keys of all
MIN_USUAL_BATCH_SIZE = 256  # a lower batch_size is probably meant in sentences, as in T2T
TOKENS_PER_SENTENCE = 32  # input tokens of a usual sentence
SAMPLING_METHODS = ("argmax", "random")
SHORTLISTS = OFF, ON = "off", "on"
TEMPERATURES = (0.001, 1000.0)  # between these, logits stay finite
ENGINES = TENSORFLOW, CTRANSLATE2 = "tensorflow", "ctranslate2"
JAX = "jax"  # decodes where the engine is TensorFlow, and Keras's backend is JAX
PRECISIONS = FLOAT32, BFLOAT16, INT8 = "float32", "bfloat16", "int8"
MIXED_BFLOAT16 = "mixed_bfloat16"  # of an export whose weights are int8
MEANS = PROBABILITIES, LOGARITHMS = "probabilities", "logarithms"  # of an ensemble
UTILITIES = CHRF, BLEU = "chrf", "bleu"  # of minimum Bayes risk
MAX_CANDIDATES = 100
NUMBERS = "+numbers"
HTML, PLACEHOLDERS = "html", "placeholders"
MARKUP = tuple(kind + numbers for kind in (HTML, PLACEHOLDERS) for numbers in ("", NUMBERS))
PHARAOH = "pharaoh"  # format of alignments
MAX_ALTERNATIVES = 100


@dataclass(frozen=True)
class DecodeHParams:
    """Settings of decoding. Names are T2T's, defaults the paper's for translation (section 6.1)."""

    beam_size: int = 4  # hypotheses kept at each position, 1 is greedy; maximum number of samples
    alpha: float = 0.6  # exponent of the length penalty
    extra_length: int = 50  # maximum number of tokens that an output has more than its input
    batch_size: int = 2048  # input tokens decoded at once, padding included (in T2T: sentences)
    return_beams: bool = False  # return all beam_size outputs instead of the best
    write_beam_scores: bool = False  # write each output's score after it
    constrained: bool = False  # parsing: produce only trees over the words of the sentence
    tokenized: bool = False  # parsing: inputs are split into words and punctuation, as in treebanks
    sampling_method: str = "argmax"  # argmax: beam search; random: sampling
    sampling_temp: float = 1.0  # random: divides logits; near 0, the best token is always drawn
    sampling_keep_top_k: int = -1  # random: draw from the k most probable tokens; -1 draws from all
    random_seed: int = 0  # random: sampling seed; equal seeds give equal outputs
    early_stopping: bool = False  # stop a sentence as soon as no better output is likely, not impossible
    tag: str = ""  # before each line, as in the training data; see docs/guides/mixing.md
    no_repeat_ngram_size: int = 0  # no n-gram of so many tokens occurs twice; 0 is off
    repetition_penalty: float = 1.0  # makes tokens that the output has already less probable; 1 is off
    min_length_ratio: float = 0.0  # tokens of an output at least, by those of its input
    max_length_ratio: float = 0.0  # tokens at most; 0 is off
    coverage_penalty: float = 0.0  # beta of Wu et al. (2016): prefers outputs that attend to all of the input
    mbr: str = ""  # chrf, bleu: of several candidates, the one most like the others by this measure
    candidates: int = 32  # mbr: samples, or without sampling the best outputs of a beam as wide
    split_sentences: bool = False  # translate each sentence of a line for itself
    markup: str = ""  # html, placeholders, or with +numbers: tags and placeholders come out as they are
    alignments: str = ""  # pharaoh: after each output, which of its words translates which of the input
    token_scores: bool = False  # t2t-decoder --output_format=jsonl: log-probabilities of tokens and words
    alternatives: int = 0  # jsonl: number of most probable tokens that are listed for each position
    shortlist: str = OFF  # on: with CTranslate2, only tokens that may translate the batch's lines

    def __post_init__(self) -> None:
        for fault in type_faults(self):
            raise T2TError(f"decode_hparams: {fault}")
        for name, minimum, maximum in BOUNDS:
            value = getattr(self, name)
            _require(value >= minimum, f"{name}={value} must be at least {minimum}")
            _require(value <= maximum, f"{name}={value} must be at most {maximum}")
        least = MIN_EXTRA_LENGTH_OF_TREE if self.constrained else 0
        fault = f"extra_length={self.extra_length} must be at least {least} with constrained=True"
        _require(self.extra_length >= least, fault)
        for term in TERMS:
            value, bounds = getattr(self, term.name), f"between {term.minimum} and {term.maximum}"
            _require(term.minimum <= value <= term.maximum, f"{term.name}={value} must be {bounds}")
        _require(not re.search(r"\s", self.tag), f"tag={self.tag!r} must not have spaces")
        self._check_guards()
        self._check_mbr()
        self._check_details()
        self._check_coverage()
        self._check_single()
        self._check_sampling()
        modes = ", ".join(SHORTLISTS)
        _require(self.shortlist in SHORTLISTS, f"shortlist={self.shortlist} must be one of {modes}")

    def _check_guards(self) -> None:
        for name, minimum, maximum in GUARD_BOUNDS:
            value = getattr(self, name)
            _require(minimum <= value <= maximum, f"{name}={value} must be between {minimum} and {maximum}")
        least, most = self.min_length_ratio, self.max_length_ratio
        fits = least <= most or not most
        _require(fits, f"min_length_ratio={least} must be at most max_length_ratio={most}")
        given = next(iter(self.guards), None)
        _require(not (given and self.constrained), f"{given} is for text: leave it out with constrained=True")

    def _check_mbr(self) -> None:
        utilities = " or ".join(UTILITIES)
        _require(self.mbr in ("", *UTILITIES), f"mbr={self.mbr} must be {utilities}")
        is_default = self.candidates == type(self).candidates
        _require(bool(self.mbr) or is_default, "candidates has no effect without mbr")
        _require(not (self.mbr and self.constrained), "mbr is for text: leave it out with constrained=True")
        least = max(self.beam_size, 2) if self.mbr else 2
        fits = least <= self.candidates <= MAX_CANDIDATES
        fault = f"candidates={self.candidates} must be between {least} and {MAX_CANDIDATES}"
        _require(fits, f"{fault}, and at least beam_size={self.beam_size}" if self.mbr else fault)

    def _check_coverage(self) -> None:
        beta, bounds = self.coverage_penalty, f"between 0 and {MAX_COVERAGE_PENALTY}"
        _require(0 <= beta <= MAX_COVERAGE_PENALTY, f"coverage_penalty={beta} must be {bounds}")
        for name in ("constrained", "samples", "mbr"):
            shown = {"samples": "sampling_method=random", "constrained": "constrained=True"}.get(name, name)
            useless = beta and getattr(self, name)
            _require(not useless, f"coverage_penalty cannot be combined with {shown}")
        _require(not (beta and self.beam_size < 2), "coverage_penalty needs a beam: give beam_size=2 or more")

    def _check_details(self) -> None:
        _require(self.alignments in ("", PHARAOH), f"alignments={self.alignments} must be {PHARAOH}")
        bounds = f"between 0 and {MAX_ALTERNATIVES}"
        fault = f"alternatives={self.alternatives} must be {bounds}"
        _require(0 <= self.alternatives <= MAX_ALTERNATIVES, fault)
        name = self.details
        _require(not (name and self.constrained), f"{name} is for text: leave it out with constrained=True")

    def _check_single(self) -> None:
        kinds = ", ".join(MARKUP)
        _require(self.markup in ("", *MARKUP), f"markup={self.markup} must be one of {kinds}")
        for name in ("constrained", "return_beams"):
            for option in ("split_sentences", "markup"):
                useless = getattr(self, option) and getattr(self, name)
                _require(not useless, f"{option} cannot be combined with {name}=True")
        useless = self.split_sentences and self.samples
        _require(not useless, "split_sentences cannot be combined with sampling_method=random")
        name = self.details
        for option in ("split_sentences", "markup"):
            fault = f"{option} cannot be combined with {name}"
            _require(not (name and getattr(self, option)), fault)

    @property
    def tokens_at_once(self) -> int:
        """Input tokens of a batch: fewer with a wide beam."""
        return self.batch_size // max(self.candidates_of(self.beam_size) ** 2 // WIDE, 1)

    def candidates_of(self, outputs: int) -> int:
        """Returns how many outputs must be found to return some of them: as many, or more to choose from."""
        if self.mbr:
            return self.candidates
        return self.beam_size if self.coverage_penalty else outputs

    def _check_sampling(self) -> None:
        method, temperature, top_k = self.sampling_method, self.sampling_temp, self.sampling_keep_top_k
        methods = " or ".join(SAMPLING_METHODS)
        _require(method in SAMPLING_METHODS, f"sampling_method={method} must be {methods}")
        for name in ("sampling_temp", "sampling_keep_top_k", "random_seed"):
            is_default = getattr(self, name) == getattr(type(self), name)
            _require(self.samples or is_default, f"{name} has no effect without sampling_method=random")
        useless = self.samples and self.early_stopping
        _require(not useless, "early_stopping has no effect with sampling_method=random")
        lowest, highest = TEMPERATURES
        _require(
            lowest <= temperature <= highest,
            f"sampling_temp={temperature} must be between {lowest} and {highest}; to always choose the most "
            "probable token, give beam_size=1 without sampling",
        )
        _require(top_k >= 1 or top_k == -1, f"sampling_keep_top_k={top_k} must be -1 or at least 1")
        _require(self.random_seed >= 0, f"random_seed={self.random_seed} must be at least 0")

    @property
    def guards(self) -> dict[str, Any]:
        """The settings against repeated, too short and too long outputs that are not off, by name."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        settings = {name: getattr(self, name) for name in GUARDS}
        return {name: value for name, value in settings.items() if value != defaults[name]}

    @property
    def score_terms(self) -> dict[str, float]:
        """The settings of the terms that the score has, by name; see `hypothesis_scores.TERMS`."""
        settings = {term.name: float(getattr(self, term.name)) for term in TERMS}
        return {name: value for name, value in settings.items() if value}

    @property
    def details(self) -> str:
        """The first setting that asks for details of outputs; empty if none does."""
        return next(
            (name for name in ("alignments", "token_scores", "alternatives") if getattr(self, name)), ""
        )

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
    def batch_size_warning(self) -> str | None:
        """Warning if `batch_size` seems to count sentences, as in T2T; else `None`."""
        if self.batch_size >= MIN_USUAL_BATCH_SIZE:
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
        return self.sampling_method == "random"

    def check_served(self) -> None:
        """Checks that these settings can be those of an export, with which lines without options are decoded.

        Raises:
            T2TError: they ask for sampling, minimum Bayes risk, sentences, markup, details or a shortlist.
        """
        self.check_no_shortlist()
        if self.details:
            raise T2TError(f"decode_hparams: {self.details} is for t2t-decoder: leave it out")
        if self.coverage_penalty:
            raise T2TError("decode_hparams: coverage_penalty is for t2t-decoder: leave it out")
        if self.mbr:
            raise T2TError("decode_hparams: mbr is for t2t-decoder: exported models do not compare outputs")
        if self.split_sentences:
            raise T2TError("decode_hparams: split_sentences is for t2t-decoder and for clients of exports")
        if self.markup:
            raise T2TError("decode_hparams: markup is for t2t-decoder: leave it out")
        if self.samples:
            raise T2TError(
                "decode_hparams: sampling_method=random is for requests, not for an export, whose own "
                "settings are those of a search: leave it out, and give it to t2t-query-server"
            )

    def check_no_shortlist(self) -> None:
        """Checks that these settings have no shortlist, which is CTranslate2's only.

        Raises:
            T2TError: they have one.
        """
        _require(
            not self.has_shortlist,
            f"shortlist={self.shortlist} is for CTranslate2, whose vocabulary map t2t-shortlist learns: use "
            "--engine=ctranslate2, or --format=ctranslate2 for an export, or leave it out",
        )

    def check_litert(self) -> None:
        """Checks that LiteRT's format supports these settings.

        Raises:
            T2TError: they ask for trees, a tag or a guard.
        """
        for given, name in (
            (self.constrained, "constrained=True"),
            (self.tag, "tag"),
            (self.guards, next(iter(self.guards), "")),
        ):
            if given:
                raise T2TError(f"decode_hparams: LiteRT's format has no {name}: leave it out")

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
        if unknown := [name for name in defaults or {} if name not in types]:
            raise T2TError(
                f"decode_hparams of the problem: {did_you_mean(unknown[0], types, 'decode_hparam')}"
            )
        try:
            return cls(**{**(defaults or {}), **parse_overrides(text, types)})
        except (T2TError, TypeError) as error:
            raise T2TError(f"decode_hparams: {str(error).removeprefix('decode_hparams: ')}") from error


def _require(condition: bool, fault: str) -> None:
    if not condition:
        raise T2TError(f"decode_hparams: {fault}")
