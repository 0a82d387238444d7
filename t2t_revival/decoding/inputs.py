"""Lines as batches of ids: what searching and scoring do before and around the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import tensorflow as tf

from t2t_revival.data.vocabulary import EOS, PAD
from t2t_revival.errors import LineError, T2TError

if TYPE_CHECKING:
    from t2t_revival.data.vocabularies import TextEncoder
    from t2t_revival.decoding.options import DecodeHParams

LEAST_TOKENS = 16  # that a sentence counts in a batch, so that short ones do not make a batch of thousands
LEAST_BATCH = 256  # input tokens below which a batch is not made smaller to keep all streams busy
WINDOWS = (
    4,
    16,
    64,
    256,
)  # batches sorted by length together: in the first window, and so on; the last for all after
LINE_ENDS = str.maketrans("\n\r", "  ")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Cut:
    """An input that was too long: line `number` (from 1) has `tokens`, of which `kept` were decoded."""

    number: int
    tokens: int
    kept: int

    def __str__(self) -> str:
        return f"line {self.number}: {self.tokens} tokens, cut to the first {self.kept} (hparams: max_length)"


@dataclass(frozen=True)
class Progress:
    """How far decoding is.

    Attributes:
        done: sentences, those that were known before included.
        total: sentences.
        share: of the input tokens that were not known before.
    """

    done: int
    total: int
    share: float


def encode(vocabulary: TextEncoder, texts: Sequence[str], first_line: int = 1) -> list[list[int]]:
    """Ids of each text, without EOS.

    Args:
        vocabulary: of the texts.
        texts: without line ends.
        first_line: the number of the first.

    Raises:
        LineError: a text holds what is no character.
    """
    for number, text in enumerate(texts, start=first_line):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise LineError(number, f"a lone surrogate is no character: {error.reason}") from error
    return [list(ids) for ids in vocabulary.encode_batch(texts)]


def cut(
    encoded: list[list[int]], max_length: int, on_cut: Callable[[Cut], None], first_line: int = 1
) -> list[list[int]]:
    """Ids with EOS behind them, at most `max_length`; `on_cut` is told of those that had more."""
    for number, ids in enumerate(encoded, start=first_line):
        if len(ids) >= max_length:
            on_cut(Cut(number, len(ids) + 1, max_length))
    return [[*ids[: max_length - 1], EOS] for ids in encoded]


def padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """int32 [rows, longest]."""
    table = np.full((len(rows), max(map(len, rows))), PAD, np.int32)
    for row, ids in zip(table, rows, strict=True):
        row[: len(ids)] = ids
    return table


def batches(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Indices of inputs in groups of `batch_size` tokens with the padding: a pure function of its arguments.

    Inputs are sorted by length, longest first, within windows of consecutive inputs that grow from one to the
    next: small ones at the start have the first results in input order soon, large ones need little padding.

    Args:
        lengths: in tokens.
        batch_size: a group has more only if it is one input.
    """
    for window in _windows(lengths, batch_size):
        batch: list[int] = []
        for index in sorted(window, key=lambda index: -lengths[index]):
            width = max(lengths[batch[0] if batch else index], LEAST_TOKENS)
            if batch and (len(batch) + 1) * width > batch_size:
                yield batch
                batch = []
            batch.append(index)
        yield batch


def _windows(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Consecutive inputs, as many as `WINDOWS` batches hold."""
    sizes = chain(WINDOWS, repeat(WINDOWS[-1]))
    window: list[int] = []
    left = next(sizes) * batch_size
    for index, length in enumerate(lengths):
        window.append(index)
        left -= max(length, LEAST_TOKENS)
        if left <= 0:
            yield window
            window, left = [], next(sizes) * batch_size
    if window:
        yield window


def in_batches(
    function: Callable[[list[int]], list[Result]],
    lengths: Sequence[int],
    batch_size: int,
    streams: int = 1,
    on_progress: Callable[[Progress], None] | None = None,
    known: Mapping[int, Result] | None = None,
    on_results: Callable[[Mapping[int, Result]], None] | None = None,
) -> dict[int, Result]:
    """Results of `function` by input.

    Args:
        function: of a batch's indices, a result for each.
        lengths: see `batches`.
        batch_size: see `batches`; less where not all streams would be busy.
        streams: how many batches are worked on side by side.
        on_progress: called after each batch.
        known: results of whole batches that an earlier call has passed to `on_results`; they are not computed
            again. The other batches stay the same, since float32 results depend on the shape of a batch.
        on_results: called with the results of each batch as it is finished.
    """
    found = dict(known or {})
    size = min(batch_size, max(sum(lengths) // streams, LEAST_BATCH))
    left = [batch for batch in batches(lengths, size) if not found.keys() >= set(batch)]
    tokens = waiting = sum(lengths[index] for batch in left for index in batch)
    done = len(lengths) - sum(map(len, left))
    for batch, results in _side_by_side(function, iter(left), streams):
        ready = dict(zip(batch, results, strict=True))
        if on_results:
            on_results(ready)
        found |= ready
        done += len(batch)
        waiting -= sum(lengths[index] for index in batch)
        if on_progress:
            on_progress(Progress(done, len(lengths), 1 - waiting / tokens))
    return found


def _side_by_side(
    function: Callable[[list[int]], Result], waiting: Iterator[list[int]], streams: int
) -> Iterator[tuple[list[int], Result]]:
    if streams == 1:
        yield from ((batch, function(batch)) for batch in waiting)
        return
    with ThreadPoolExecutor(streams) as pool:

        def submit(count: int) -> set[Future]:
            return {pool.submit(lambda batch: (batch, function(batch)), b) for b in islice(waiting, count)}

        running = submit(streams)
        while running:
            ready, running = wait(running, return_when=FIRST_COMPLETED)
            running |= submit(len(ready))
            yield from (future.result() for future in ready)


@contextmanager
def too_little_memory(options: DecodeHParams) -> Iterator[None]:
    """What to do where there is too little memory, in one line.

    Raises:
        T2TError: there is.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        raise T2TError(
            f"out of memory: lower batch_size (it is {options.batch_size} tokens) or beam_size "
            f"({options.beam_size}) in --decode_hparams"
        ) from error
