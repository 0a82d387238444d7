"""Path lengths of layer types, and the derivatives they are computed from."""

import math
from itertools import repeat

import numpy as np
import pytest

from t2t_revival.reproduction.table1.layer_types import LAYER_TYPES, influence, layers_to_reach, path_length

TYPES = {t.name.split(" (")[0]: t for t in LAYER_TYPES if not t.name.endswith("), unprojected")}
K = 3  # kernel
CAUSAL = np.tri(9, dtype=bool)


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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("self-attention", np.ones((9, 9), bool)),
        ("recurrent", CAUSAL),
        ("convolutional", CAUSAL & ~np.tri(9, k=-K, dtype=bool)),
        ("restricted self-attention", np.tri(80, k=31, dtype=bool) & ~np.tri(80, k=-33, dtype=bool)),
    ],
)
def test_influence_is_what_a_layer_looks_at(name, expected) -> None:
    np.testing.assert_array_equal(influence(TYPES[name].make(64), len(expected)), expected)


@pytest.mark.parametrize(("reach", "layers"), [(1, 8), (2, 4), (3, 3), (8, 1)])
def test_layers_that_see_some_positions_to_each_side(reach, layers) -> None:
    places = np.arange(9)
    assert layers_to_reach(repeat(abs(places[:, None] - places) <= reach)) == layers


def test_a_layer_that_looks_ahead_only_never_gets_there() -> None:
    with pytest.raises(ValueError, match="never"):
        layers_to_reach(repeat(CAUSAL.T))
