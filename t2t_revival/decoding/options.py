"""`DecodeHParams`: settings of decoding (T2T's `--decode_hparams`); names of engines."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from t2t_revival.decoding import capabilities
from t2t_revival.decoding.hypothesis_scores import TERMS
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.hparams.hparams import parse_overrides, type_faults
from t2t_revival.utils.unicode_forms import FORMS

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem

TEMPERATURES = (0.001, 1000.0)  # between these, logits stay finite
MAX_CANDIDATES = MAX_ALTERNATIVES = 100
BOUNDS = (  # minimum and maximum of what is not the default
    ("beam_size", 1, 100),
    ("extra_length", 0, 10_000),  # far beyond, there is not enough memory
    ("batch_size", 1, math.inf),
    *((term.name, term.minimum, term.maximum) for term in TERMS),
    ("sampling_temp", *TEMPERATURES),
    ("sampling_keep_top_k", 1, math.inf),
    ("random_seed", 0, math.inf),
    ("no_repeat_ngram_size", 0, 100),
    ("repetition_penalty", 0.01, 100),
    ("min_length_ratio", 0, 10),
    ("max_length_ratio", 0, 1000),
    ("coverage_penalty", 0, 100),
    ("candidates", 2, MAX_CANDIDATES),
    ("alternatives", 0, MAX_ALTERNATIVES),
)
MIN_EXTRA_LENGTH_OF_TREE = 2  # (TOP XX )TOP EOS has two tokens more than a word and EOS
WIDE = 64  # beam_size^2 from which batches are smaller, since each hypothesis attends to the keys of all
MIN_USUAL_BATCH_SIZE = 256  # a lower batch_size is probably meant in sentences, as in T2T
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
CHOICES = {  # values beside the default
    "sampling_method": ("argmax", "random"),
    "mbr": UTILITIES,
    "markup": MARKUP,
    "alignments": (PHARAOH,),
    "shortlist": (OFF, ON),
    "unicode_form": FORMS,
}


@dataclass(frozen=True)
class DecodeHParams:
    """Settings of decoding. Names are T2T's, defaults the paper's for translation (section 6.1)."""

    beam_size: int = 4  # hypotheses kept at each position, 1 is greedy; maximum number of samples
    alpha: float = 0.6  # exponent of the length penalty
    normalize: float = 0.0  # exponent of the length by which scores are divided, as in Marian
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
    unicode_form: str = ""  # nfc, nfd: Unicode's form into which text is brought before it is cut into pieces
    shortlist: str = OFF  # on: with CTranslate2, only tokens that may translate the batch's lines

    def __post_init__(self) -> None:
        for fault in type_faults(self):
            raise T2TError(f"decode_hparams: {fault}")
        self._check_bounds()
        self._check_relations()
        asked = self.asked()
        capabilities.check(asked)
        capabilities.check_effects(asked)

    def _check_bounds(self) -> None:
        """Rejects values out of bounds; a default, which may say that a setting is off, is always in."""
        for name, minimum, maximum in BOUNDS:
            value, default = getattr(self, name), getattr(type(self), name)
            limits = f"between {minimum} and {maximum}" if maximum < math.inf else f"at least {minimum}"
            off = "" if minimum <= default <= maximum else f", or {default}"
            fits = minimum <= value <= maximum or value == default
            _require(fits, f"{name}={value} must be {limits}{off}")
        for name, choices in CHOICES.items():
            value, default = getattr(self, name), getattr(type(self), name)
            _require(value in (default, *choices), f"{name}={value} must be {' or '.join(choices)}")

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
            of_call: by name, whether a call asks for what `capabilities.OF_CALLS` has too.
            beside: settings that ask for nothing. `None` are the defaults.
        """
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        usual = beside or type(self)
        asked = {name: f"{name}={value}" for name, value in values.items() if value != getattr(usual, name)}
        more = {"greedy": self.beam_size == 1, **(of_call or {})}
        return asked | {name: capabilities.OF_CALLS[name] for name, given in more.items() if given}

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
        return {name: getattr(self, name) for name in capabilities.GUARDS & self.asked().keys()}

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
