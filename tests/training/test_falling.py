"""Whether the loss still falls too fast for an average of the last checkpoints."""

from pathlib import Path

import pytest

from t2t_revival.curve_files import is_falling


@pytest.mark.parametrize(
    ("losses", "count", "falling"),
    [
        ([6.9, 5.5, 4.2], 5, True),
        ([6.9, 5.5, 4.2, 2.01, 2.0, 1.99], 3, False),
        ([6.9, 5.5, 4.2, 2.01, 2.0, 1.99], 4, True),
        ([2.0, 2.1, 2.2], 5, False),
        ([5.0], 5, False),
        ([0.14, 0.12, 0.11], 3, False),
    ],
)
def test_the_loss_over_the_checkpoints_of_an_average(
    tmp_path: Path, losses: list[float], count: int, falling: bool
) -> None:
    rows = [f"{step},{step * 9},1.0,{loss},d,e" for step, loss in enumerate(losses, start=1)]
    (tmp_path / "dev.csv").write_text(
        "\n".join(["step,target_tokens,seconds,loss,data,decoding", *rows, ""]), encoding="utf-8"
    )
    assert is_falling(tmp_path, count) == falling


def test_no_evaluations(tmp_path: Path) -> None:
    assert not is_falling(tmp_path, 5)
