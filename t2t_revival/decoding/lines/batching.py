"""Batches of inputs of similar length, decoded one after the other or in parallel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from typing import TypeVar

MIN_TOKENS = 16  # tokens that a sentence counts at least, so that no batch has thousands of short ones
MIN_BATCH_SIZE = 256  # input tokens; batches are not made smaller than this to keep all threads busy
WINDOWS = (4, 16, 64)  # batches that are sorted by length together, window by window; then 64 always
POSITIONS = 2048  # tokens of one pass over finished outputs, each of which has scores of the vocabulary
Batch = TypeVar("Batch")
Result = TypeVar("Result")


@dataclass(frozen=True)
class DecodingProgress:
    """Progress of decoding, in lines."""

    done: int  # those completed by an earlier call included
    total: int
    share: float  # of the input tokens that are done, without those of an earlier call


OnProgress = Callable[[DecodingProgress], None]


def make_batches(
    lengths: Sequence[int], batch_size: int, indices: Iterable[int] | None = None
) -> Iterator[list[int]]:
    """Yields indices of inputs in batches of `batch_size` tokens, padding included, the longest first.

    Args:
        lengths: in tokens.
        batch_size: exceeded only by a batch of a single input.
        indices: of the inputs; `None` is all.
    """
    batch: list[int] = []
    indices = range(len(lengths)) if indices is None else indices
    for index in sorted(indices, key=lambda index: -lengths[index]):
        width = max(lengths[batch[0] if batch else index], MIN_TOKENS)
        if batch and (len(batch) + 1) * width > batch_size:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


@dataclass(frozen=True)
class BatchPlan:
    """Inputs, and how they are decoded in windows and batches.

    Attributes:
        lengths: of the inputs, in tokens.
        batch_size: see `make_batches`.
        lines: of which each input is a part, by index; `None` where each is a line.
        sizes: batches of the first windows; all others are as large as the last of these.
    """

    lengths: Sequence[int]
    batch_size: int
    lines: Sequence[int] | None = None
    sizes: Sequence[int] = WINDOWS

    def line_of(self, index: int) -> int:
        """Returns the line of an input; the number of lines after the last."""
        if self.lines is None:
            return index
        return self.lines[index] if index < len(self.lines) else self.lines[-1] + 1

    def for_parallel(self, number: int) -> BatchPlan:
        """Returns this plan with batches that are so small that none of the parallel ones is empty."""
        share = max(sum(self.lengths) // number, MIN_BATCH_SIZE)
        return replace(self, batch_size=min(self.batch_size, share))

    def batches(self, window: range) -> Iterator[list[int]]:
        """Yields the batches of a window, as indices of inputs."""
        return make_batches(self.lengths, self.batch_size, window)

    def windows(self) -> Iterator[range]:
        """Yields windows of whole lines, as inputs; small ones first, so that the first results come soon."""
        batches = chain(self.sizes, repeat(self.sizes[-1]))
        begin, room = 0, next(batches) * self.batch_size
        for end, length in enumerate(self.lengths, start=1):
            room -= max(length, MIN_TOKENS)
            is_last = end == len(self.lengths)
            if is_last or (room <= 0 and self.line_of(end - 1) < self.line_of(end)):
                yield range(begin, end)
                begin, room = end, next(batches) * self.batch_size


def map_batches(
    function: Callable[[list[int]], list[Result]],
    plan: BatchPlan,
    num_parallel_batches: int = 1,
    on_progress: OnProgress | None = None,
    skip: int = 0,
) -> Iterator[tuple[range, list[Result]]]:
    """Calls a function with batches of inputs; yields windows of lines in order, with the results of inputs.

    Windows and batches are a function of the other arguments alone, since float32 results depend on a
    batch's shape: with `skip`, the other results are the same.

    Args:
        function: called with the indices of a batch; returns a result for each.
        plan: see `BatchPlan.for_parallel`.
        num_parallel_batches: number of batches that are computed at the same time, each in a thread.
        on_progress: called after each batch.
        skip: number of lines at the beginning whose results are known. Windows of these alone are left out.
    """
    plan, lengths = plan.for_parallel(num_parallel_batches), plan.lengths
    windows = [window for window in plan.windows() if plan.line_of(window.stop) > skip]
    batches = [[*plan.batches(window)] for window in windows]
    all_tokens = pending_tokens = sum(lengths[windows[0].start :]) if windows else 0
    computed = map_parallel(function, chain.from_iterable(batches), num_parallel_batches)
    done = sum(plan.line_of(index) < skip for index in range(len(lengths)))
    total = plan.line_of(len(lengths)) if lengths else 0
    for window, own in zip(windows, batches, strict=True):
        results: dict[int, Result] = {}
        for batch in own:
            results |= zip(batch, next(computed), strict=True)
            done += sum(plan.line_of(index) >= skip for index in batch)
            pending_tokens -= sum(lengths[index] for index in batch)
            if on_progress:
                on_progress(DecodingProgress(plan.line_of(done), total, 1 - pending_tokens / all_tokens))
        lines = range(plan.line_of(window.start), plan.line_of(window.stop))
        yield lines, [results[index] for index in window]


def without(skip: int, windows: Iterable[tuple[range, Sequence[Result]]]) -> Iterator[Result]:
    """Yields the results of windows, without those of the first `skip` lines, of which each is an input."""
    for window, results in windows:
        yield from results[max(skip - window.start, 0) :]


def map_parallel(
    function: Callable[[Batch], Result], batches: Iterator[Batch], num_parallel_batches: int
) -> Iterator[Result]:
    """Yields the results of batches in their order; while one is awaited, others are computed."""
    if num_parallel_batches == 1:
        return map(function, batches)
    return _map_in_threads(function, batches, num_parallel_batches)


def _map_in_threads(
    function: Callable[[Batch], Result], batches: Iterator[Batch], num_parallel_batches: int
) -> Iterator[Result]:
    pool = ThreadPoolExecutor(num_parallel_batches)
    try:
        waiting = deque(pool.submit(function, batch) for batch in islice(batches, 2 * num_parallel_batches))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(function, batch) for batch in islice(batches, 1))
    finally:
        pool.shutdown(cancel_futures=True)
