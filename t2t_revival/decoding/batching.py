"""Batches of inputs of similar length, decoded one after the other or in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import TypeVar

MIN_TOKENS = 16  # tokens that a sentence counts at least, so that no batch has thousands of short ones
MIN_BATCH_SIZE = 256  # input tokens; batches are not made smaller than this to keep all threads busy
WINDOWS = (4, 16, 64, 256)  # batches that are sorted by length together, window by window; then 256 always
POSITIONS = 2048  # tokens of one pass over finished outputs, each of which has scores of the vocabulary
Result = TypeVar("Result")


@dataclass(frozen=True)
class DecodingProgress:
    """Progress of decoding, in sentences."""

    done: int  # those completed by an earlier call included
    total: int
    share: float  # of the input tokens that are done, without those of an earlier call


def make_batches(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Yields indices of inputs in batches of `batch_size` tokens, padding included.

    Inputs are sorted by length, longest first, within windows of consecutive inputs. Windows grow: small
    ones at the start complete the first results soon, large ones need little padding. Equal arguments give
    equal batches.

    Args:
        lengths: in tokens.
        batch_size: exceeded only by a batch of a single input.
    """
    for window in _windows(lengths, batch_size):
        batch: list[int] = []
        for index in sorted(window, key=lambda index: -lengths[index]):
            width = max(lengths[batch[0] if batch else index], MIN_TOKENS)
            if batch and (len(batch) + 1) * width > batch_size:
                yield batch
                batch = []
            batch.append(index)
        yield batch


def _windows(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Yields indices of consecutive inputs that fill the batches of a window."""
    sizes = chain(WINDOWS, repeat(WINDOWS[-1]))
    window: list[int] = []
    room = next(sizes) * batch_size
    for index, length in enumerate(lengths):
        window.append(index)
        room -= max(length, MIN_TOKENS)
        if room <= 0:
            yield window
            window, room = [], next(sizes) * batch_size
    if window:
        yield window


def map_batches(
    function: Callable[[list[int]], list[Result]],
    lengths: Sequence[int],
    batch_size: int,
    num_parallel_batches: int = 1,
    on_progress: Callable[[DecodingProgress], None] | None = None,
    completed: Mapping[int, Result] | None = None,
    on_results: Callable[[Mapping[int, Result]], None] | None = None,
) -> dict[int, Result]:
    """Calls a function with batches of inputs; returns results by index of the input.

    Args:
        function: called with the indices of a batch; returns a result for each.
        lengths: see `make_batches`.
        batch_size: see `make_batches`; lowered where some of the parallel batches would be empty.
        num_parallel_batches: number of batches that are computed at the same time, each in a thread.
        on_progress: called after each batch.
        completed: results of complete batches that an earlier call has passed to `on_results`. They are not
            computed again. The other batches stay as they were, since float32 results depend on a batch's
            shape.
        on_results: called with the results of each batch when it is complete.
    """
    results = dict(completed or {})
    batch_size = min(batch_size, max(sum(lengths) // num_parallel_batches, MIN_BATCH_SIZE))
    batches = [batch for batch in make_batches(lengths, batch_size) if not results.keys() >= set(batch)]
    all_tokens = pending_tokens = sum(lengths[index] for batch in batches for index in batch)
    done = len(lengths) - sum(map(len, batches))
    for batch, values in _map_parallel(function, iter(batches), num_parallel_batches):
        batch_results = dict(zip(batch, values, strict=True))
        if on_results:
            on_results(batch_results)
        results |= batch_results
        done += len(batch)
        pending_tokens -= sum(lengths[index] for index in batch)
        if on_progress:
            on_progress(DecodingProgress(done, len(lengths), 1 - pending_tokens / all_tokens))
    return results


def _map_parallel(
    function: Callable[[list[int]], Result], batches: Iterator[list[int]], num_parallel_batches: int
) -> Iterator[tuple[list[int], Result]]:
    """Yields batches with their results, in the order in which they are complete."""
    if num_parallel_batches == 1:
        yield from ((batch, function(batch)) for batch in batches)
        return
    with ThreadPoolExecutor(num_parallel_batches) as pool:

        def submit(count: int) -> set[Future]:
            return {pool.submit(lambda batch: (batch, function(batch)), b) for b in islice(batches, count)}

        running = submit(num_parallel_batches)
        while running:
            complete, running = wait(running, return_when=FIRST_COMPLETED)
            running |= submit(len(complete))
            yield from (future.result() for future in complete)
