"""The output of the n-best that is nearest a reference."""

import pytest

from t2t_revival import Translation
from t2t_revival.decoding.nearest import nearest

OUTPUTS = [Translation(text, -1.0 - rank) for rank, text in enumerate(("eine Katze", "ein Hund", "der Hund"))]


@pytest.mark.parametrize(
    ("reference", "rank"),
    [
        ("ein Hund", 1),
        ("der Hund schläft", 2),
        ("eine Katze und ein Hund", 0),
        ("", 0),
        ("日本", 0),  # nothing in common with any: the best by the model
    ],
)
def test_nearest(reference: str, rank: int) -> None:
    assert nearest(OUTPUTS, reference) is OUTPUTS[rank]


def test_of_equals_the_better_one_is_nearest() -> None:
    twins = [Translation("ein Hund", -1.0), Translation("ein Hund", -2.0)]
    assert nearest(twins, "ein Hund") is twins[0]
