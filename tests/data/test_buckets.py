"""Buckets of lengths beside tensor2tensor's (`data_reader.batching_scheme`)."""

import json
from pathlib import Path
from typing import Any

import pytest

from t2t_revival.data.batching import bucket_batch_sizes, bucket_boundaries

SCHEMES = json.loads((Path(__file__).parents[1] / "reference" / "batching_scheme.json").read_text())
# Examples that T2T gathers before it cuts them into batches: a highly composite number, at most three of the
# largest batches.
WINDOWS = {1024: 360, 2048: 720, 4096: 1260}


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: f"{s['batch_size']}-{s['max_length']}")
def test_bounds_and_sizes(scheme: dict[str, Any]) -> None:
    """Compares bounds, which are equal, and sizes, which T2T rounds down to a divisor of its window."""
    bounds = bucket_boundaries(scheme["max_length"], 8, 1.1)
    assert bounds == [*scheme["boundaries"], scheme["max_length"]]
    window = WINDOWS[scheme["batch_size"]]
    rounded = [
        max(divisor for divisor in range(1, size + 1) if window % divisor == 0)
        for size in bucket_batch_sizes(bounds, scheme["batch_size"])
    ]
    assert rounded == scheme["batch_sizes"]


@pytest.mark.parametrize(
    ("max_length", "minimum", "step", "bounds"),
    [(30, 4, 2.0, [4, 8, 16, 30]), (16, 4, 2.0, [4, 8, 16]), (8, 8, 1.1, [8]), (5, 8, 1.1, [5])],
)
def test_max_length_is_the_last_bound(max_length: int, minimum: int, step: float, bounds: list[int]) -> None:
    assert bucket_boundaries(max_length, minimum, step) == bounds


def test_batch_sizes_hold_batch_size_tokens_or_one_example() -> None:
    assert bucket_batch_sizes([4, 8, 30, 64, 100], 64) == [16, 8, 2, 1, 1]
