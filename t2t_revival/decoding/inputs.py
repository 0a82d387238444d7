"""What searches read, whichever engine decodes: sources, settings, and what restricts the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

ALL = -1  # value of keep_top_k


class SearchSettings(NamedTuple):
    """Settings of a search.

    In a graph they are scalars, or [batch, 1] with a value for each sentence: both broadcast with
    [batch, beams].

    Attributes:
        beam_size: hypotheses kept per sentence, int32; 1 is greedy decoding.
        alpha: exponent of the length penalty, float32; 0 means no penalty.
        extra_length: maximum number of tokens that an output has more than its source, int32.
        n: outputs returned per sentence, at most `beam_size`; int32.
    """

    beam_size: Any
    alpha: Any
    extra_length: Any
    n: Any = 1


class Draws(NamedTuple):
    """Random numbers and settings of sampling.

    The settings are scalars, or [batch, 1] with a value for each sentence.

    Attributes:
        uniforms: random numbers of [0, 1), float32 [batch, position, n].
        temperature: divides the logits; the nearer to 0, the more often the most probable token is drawn.
        keep_top_k: number of most probable tokens to draw from, int32; `ALL` draws from all.
    """

    uniforms: Any
    temperature: Any
    keep_top_k: Any


class Inputs(NamedTuple):
    """What a search reads.

    Attributes:
        ids: sources, int32 [batch, source]; each ends with EOS and is padded with 0. A row of padding only
            has no outputs.
        settings: of the search.
        prefixes: beginnings of the outputs, int32 [batch, longest], without EOS, padded with 0; () forces
            nothing. Scores count forced tokens like all others, and an output may also have `extra_length`
            tokens more than its prefix. Not for trees.
        draws: random numbers, if outputs are drawn and not searched for; else ().
        tables: `LexicalTables`, if outputs must or must not have phrases; else (). `beam_size` is then at
            least 2.
    """

    ids: Any
    settings: SearchSettings
    prefixes: Any = ()
    draws: Any = ()
    tables: Any = ()

    @property
    def has_prefixes(self) -> bool:
        """True if beginnings of outputs are forced."""
        return not isinstance(self.prefixes, tuple)


def draws_of_lines(
    seed: int, lines: Sequence[int], positions: int, n: int, temperature: float, keep_top_k: int = ALL
) -> Draws:
    """Returns random numbers for n samples of each line.

    Args:
        seed: at least 0.
        lines: a number for each line, at least 0. Its samples depend on it, on the seed, on n and on the
            sentence, but not on the other lines.
        positions: maximum length of the outputs.
        n: samples of a line.
        temperature: see `Draws`.
        keep_top_k: see `Draws`.
    """
    uniforms = [np.random.default_rng((seed, line)).random((positions, n), np.float32) for line in lines]
    return Draws(np.stack(uniforms), np.float32(temperature), np.int32(keep_top_k))
