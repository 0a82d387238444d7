"""Length buckets (section 5.1; T2T's `data_reader.batching_scheme`)."""

from __future__ import annotations

MIN_WIDTH = 16  # tokens; narrower batches would save little time


def bucket_boundaries(
    max_length: int, min_length_bucket: int, length_bucket_step: float, count: int = 0
) -> list[int]:
    """Returns the buckets' upper bounds in tokens, ascending; the last is `max_length` (T2T's rule).

    With a `count`, at most so many of them are left, evenly spread.
    """
    bounds = []
    bound = min_length_bucket
    while bound < max_length:
        bounds.append(bound)
        bound = max(bound + 1, int(bound * length_bucket_step))
    bounds.append(max_length)
    kept = min(count or len(bounds), len(bounds))
    return [bounds[len(bounds) * number // kept - 1] for number in range(1, kept + 1)]


def bucket_batch_sizes(bounds: list[int], batch_size: int) -> list[int]:
    """Returns the examples per replica of each bucket: `batch_size` tokens at its bound, at least one."""
    return [max(1, batch_size // bound) for bound in bounds]


def fixed_width(length: int) -> int:
    """Returns a width for batches that are compiled for each shape: the next power of two, at least 16."""
    return max(MIN_WIDTH, 1 << (length - 1).bit_length())
