"""Names that are proposed in the place of unknown ones."""

import pytest

from t2t_revival.errors import similar

KNOWN = [
    "alpha",
    "beam_size",
    "extra_length",
    "max_length_ratio",
    "return_beams",
    "sampling_keep_top_k",
    "tag",
]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("beam", ["beam_size", "return_beams"]),
        ("al", ["alpha"]),
        ("beam_sice", ["beam_size"]),
        ("length", ["extra_length", "max_length_ratio"]),
        ("top_k", ["sampling_keep_top_k"]),
        ("ratio", ["max_length_ratio"]),
        ("xyz", []),
        ("", []),
    ],
)
def test_similar_names(name: str, meant: list[str]) -> None:
    assert similar(name, KNOWN) == meant
