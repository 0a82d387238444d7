"""Path lengths of layer types."""

import math

import pytest

from t2t_revival.reproduction.table1.layer_types import LAYER_TYPES, path_length

TYPES = {t.name.split(" (")[0]: t for t in LAYER_TYPES if not t.name.endswith("), unprojected")}
K = 3  # kernel


@pytest.mark.parametrize(
    ("name", "dilated", "length", "path"),
    [
        ("self-attention", False, 9, 1),
        ("self-attention, unprojected", False, 9, 1),
        ("recurrent", False, 9, 9),
        ("convolutional", False, 9, math.ceil(8 / (K - 1))),
        ("convolutional", True, 9, math.ceil(math.log(9, K))),
        ("convolutional", True, 10, math.ceil(math.log(10, K))),
        ("separable convolutional", False, 6, math.ceil(5 / (K - 1))),
        ("separable convolutional", True, 6, math.ceil(math.log(6, K))),
        ("restricted self-attention", False, 33, 1),
        ("restricted self-attention", False, 97, 3),  # r = 64: 32 positions with each layer
    ],
)
def test_the_paper_s_path_lengths(name, dilated, length, path) -> None:
    assert path_length(TYPES[name], length, dilated) == path
