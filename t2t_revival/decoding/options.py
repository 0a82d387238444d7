"""`DecodeHParams`: how to decode (T2T's `--decode_hparams`)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.hparams.hparams import parse_overrides

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem

BOUNDS = (  # least and most; far beyond the most there is no memory
    ("beam_size", 1, 100),
    ("extra_length", 0, 10_000),
    ("batch_size", 1, math.inf),
)
LEAST_EXTRA_OF_TREE = 2  # (TOP XX )TOP and EOS, for one word and EOS
SENTENCES = 256  # a lower batch_size was probably meant in sentences, as in T2T
SENTENCE = 32  # input tokens of a usual sentence
SAMPLING_METHODS = ("argmax", "random")
TEMPERATURES = (0.001, 1000.0)  # within them, logits stay numbers
LARGEST_ALPHA = 10  # with more, a length penalty may be beyond float32


@dataclass(frozen=True)
class DecodeHParams:
    """How to decode. Field names are T2T's; the defaults are the paper's for translation (section 6.1)."""

    beam_size: int = 4  # hypotheses kept at each position; 1: greedy; random: outputs drawn at most
    alpha: float = 0.6  # exponent of the length penalty
    extra_length: int = 50  # tokens that an output may have more than its input
    batch_size: int = 2048  # input tokens decoded at once, padding included (in T2T: sentences)
    return_beams: bool = False  # return all beam_size outputs, and not only the best
    write_beam_scores: bool = False  # write each output's score behind it
    constrained: bool = False  # parsing: nothing but trees over the words of the sentence can come out
    tokenized: bool = False  # parsing: inputs have spaces between words and marks, as treebanks do
    sampling_method: str = "argmax"  # argmax: search for the best outputs; random: draw from the model
    sampling_temp: float = 1.0  # random: divides logits; the nearer to 0, the likelier the likeliest token
    sampling_keep_top_k: int = -1  # random: draw each token from the k likeliest; -1: from all
    random_seed: int = 0  # random: the same draws the same

    def __post_init__(self) -> None:
        for name, least, most in BOUNDS:
            value = getattr(self, name)
            if value < least:
                raise T2TError(f"decode_hparams: {name}={value} must be at least {least}")
            if value > most:
                raise T2TError(f"decode_hparams: {name}={value} must be at most {most}")
        if self.constrained and self.extra_length < LEAST_EXTRA_OF_TREE:
            raise T2TError(
                f"decode_hparams: extra_length={self.extra_length} must be at least {LEAST_EXTRA_OF_TREE} "
                "where constrained=True"
            )
        if not abs(self.alpha) <= LARGEST_ALPHA:
            bounds = f"between -{LARGEST_ALPHA} and {LARGEST_ALPHA}"
            raise T2TError(f"decode_hparams: alpha={self.alpha} must be {bounds}")
        self._check_sampling()

    def _check_sampling(self) -> None:
        if self.sampling_method not in SAMPLING_METHODS:
            known = " or ".join(SAMPLING_METHODS)
            raise T2TError(f"decode_hparams: sampling_method={self.sampling_method} must be {known}")
        for name in ("sampling_temp", "sampling_keep_top_k", "random_seed"):
            if not self.samples and getattr(self, name) != getattr(type(self), name):
                raise T2TError(f"decode_hparams: {name} is for sampling_method=random")
        least, most = TEMPERATURES
        if not least <= self.sampling_temp <= most:
            raise T2TError(
                f"decode_hparams: sampling_temp={self.sampling_temp} must be between {least} and {most}; "
                "beam_size=1 without sampling always takes the likeliest token"
            )
        if self.sampling_keep_top_k < 1 and self.sampling_keep_top_k != -1:
            raise T2TError(
                f"decode_hparams: sampling_keep_top_k={self.sampling_keep_top_k} must be -1 or at least 1"
            )
        if self.random_seed < 0:
            raise T2TError(f"decode_hparams: random_seed={self.random_seed} must be at least 0")

    @property
    def has_columns(self) -> bool:
        """Whether a line holds more than one output's text, with tabs between: no plain translation."""
        return self.return_beams or self.write_beam_scores

    @property
    def batch_size_warning(self) -> str | None:
        """One line where `batch_size` seems to count sentences, as it did in T2T."""
        if self.batch_size >= SENTENCES:
            return None
        tokens = max(SENTENCES, SENTENCE * self.batch_size)
        return (
            f"decode_hparams: batch_size={self.batch_size} counts input tokens here, not sentences as in "
            f"tensor2tensor, so that decoding is slow: write batch_size={tokens} for about "
            f"{tokens // SENTENCE} usual sentences, or leave it out ({type(self).batch_size})"
        )

    @property
    def samples(self) -> bool:
        """Whether outputs are drawn, not searched for."""
        return self.sampling_method == "random"

    def check_served(self) -> None:
        """Checks that an exported model can be decoded so.

        Raises:
            T2TError: it cannot.
        """
        if self.samples:
            raise T2TError(
                "decode_hparams: sampling_method=random is for t2t-decoder: models are served without"
            )

    @property
    def outputs(self) -> int:
        """How many outputs an input has."""
        return self.beam_size if self.return_beams else 1

    @classmethod
    def from_problem(cls, problem: Problem) -> DecodeHParams:
        """As the problem is decoded if nobody says otherwise."""
        return cls.parse("", problem.decode_hparams())

    @classmethod
    def parse(cls, text: str, defaults: Mapping[str, Any] | None = None) -> DecodeHParams:
        """From `text` such as "beam_size=4,alpha=0.6,return_beams=True".

        Args:
            text: overrides; empty for none.
            defaults: the problem's own (`Problem.decode_hparams`).

        Raises:
            T2TError: an unknown name (the nearest is named), a name given twice, a value that does not fit.
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
