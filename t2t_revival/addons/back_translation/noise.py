"""Noise of words, by which a model learns more from machine-made sources (Edunov et al., 2018)."""

from __future__ import annotations

import dataclasses
import math
import random
from dataclasses import dataclass

from t2t_revival.errors import T2TError
from t2t_revival.hparams.hparams import parse_overrides

BLANK = "_"  # Edunov et al. have a token of its own; here any vocabulary must be able to write it


@dataclass(frozen=True)
class WordNoise:
    """Drops words, replaces words by `BLANK`, and moves words, in this order.

    Attributes:
        drop: probability that a word is left out.
        blank: probability that a word is replaced.
        swap: maximum number of places by which a word moves.
        seed: equal seeds give equal noise.

    Raises:
        T2TError: a value is out of range, or all leave the words as they are.

    Example:
        WordNoise().apply("the old dog sleeps in the garden", number=1)
    """

    drop: float = 0.1
    blank: float = 0.1
    swap: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, bound in (("drop", 1), ("blank", 1), ("swap", math.inf), ("seed", math.inf)):
            if not 0 <= (value := getattr(self, name)) < bound:
                raise T2TError(f"{name}={value} must be at least 0 and below {bound}")
        if not (self.drop or self.blank or self.swap):
            raise T2TError("drop, blank and swap are 0, which is no noise")

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in dataclasses.asdict(self).items())

    @classmethod
    def parse(cls, text: str) -> WordNoise:
        """Parses settings such as "drop=0.1,blank=0.1,swap=3".

        Raises:
            T2TError: a name is unknown or given twice, or a value is invalid.
        """
        return cls(**parse_overrides(text, {field.name: field.type for field in dataclasses.fields(cls)}))

    def apply(self, line: str, number: int) -> str:
        """Returns a line with noise, which depends on the line, its number and the seed only.

        Words are what spaces separate; one word stays at least, unless there is none.
        """
        draw = random.Random(f"{self.seed} {number}").random
        words = line.split()
        words = [word for word in words if draw() >= self.drop] or words[:1]
        words = [BLANK if draw() < self.blank else word for word in words]
        # A word that moves by n places has passed n others, so that its place and draw exceed theirs.
        keys = [place + draw() * (self.swap + 1) for place in range(len(words))]
        return " ".join(words[place] for place in sorted(range(len(words)), key=keys.__getitem__))
