"""`batch_size=auto`: the batch size with which a device decodes most lines a second, as measured."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from t2t_revival.decoding.lines.notes import OnNote
from t2t_revival.decoding.lines.pipeline import LineTranslator
from t2t_revival.errors import OutOfMemoryError

SIZES = tuple(2048 * 4**power for power in range(5))  # tokens
GAIN = 1.1  # by which a larger size must be faster
TOKENS = 32  # of a line
LONG = 5.0  # seconds of a batch than which none need be larger


def fastest_batch_size(translator_with: Callable[[int], LineTranslator], on_note: OnNote) -> int:
    """Decodes a batch of random words with one size after the other, until a larger one is no faster.

    Each size is tried twice, since the first time compiles. One that takes long, or too much memory, ends it.

    Args:
        translator_with: makes a translator of a batch size, in tokens.
        on_note: called with a line for people.

    Raises:
        T2TError: the least size takes too much memory; or as `Translator.translate`.
    """
    best, best_rate = SIZES[0], 0.0
    for size in SIZES:
        translator = translator_with(size)
        lines = random_lines(translator, size // TOKENS)
        try:
            translator.translate(lines)
            began = time.perf_counter()
            translator.translate(lines)
        except OutOfMemoryError:
            if size == SIZES[0]:
                raise
            break
        seconds = time.perf_counter() - began
        if len(lines) / seconds < GAIN * best_rate:
            break
        best, best_rate = size, len(lines) / seconds
        if seconds > LONG:
            break
    on_note(f"batch_size=auto: {best}, with {best_rate:,.0f} lines of some {TOKENS} random tokens/s")
    return best


def random_lines(translator: LineTranslator, count: int) -> list[str]:
    """Returns lines of about `TOKENS` random tokens, always the same ones."""
    vocabulary = translator.vocabularies.inputs
    ids = np.random.default_rng(0).integers(vocabulary.size // 10, vocabulary.size, (count, TOKENS - 1))
    return [vocabulary.decode(row) or "a" for row in ids.tolist()]
