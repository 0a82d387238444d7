"""Sizes as people read them."""

import pytest

from t2t_revival.utils.texts import readable_size


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (999.9, "1.0 kB"),
        (1_000, "1.0 kB"),
        (9_960, "10 kB"),
        (1_234_567, "1.2 MB"),
        (23_456_789, "23 MB"),
        (999_600_000, "1.0 GB"),
        (1.5e13, "15.0 TB"),
    ],
)
def test_sizes(size: float, text: str) -> None:
    assert readable_size(size) == text
