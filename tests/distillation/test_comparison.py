"""Teacher and student side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from t2t_revival.distillation.comparison import make_table, measure

LINES = ["the dog sees 3 houses", "a cat"]


def test_measures(translator: Callable[..., Any]) -> None:
    splits = {
        "dev": (LINES, [line.upper() for line in LINES]),
        "test": (LINES, ["nothing in common", "?"]),
    }
    found = measure(translator(), splits)
    assert (found["parameters"], found["MB"]) == (1_000_000, 4.0)
    assert found["dev BLEU"] == pytest.approx(100)
    assert found["dev chrF"] == pytest.approx(100)
    assert found["test BLEU"] == 0
    assert found["test chrF"] < 5
    assert found["sentences/s"] > 0
    assert found["ms per sentence"] > 0


def test_table() -> None:
    found = {
        "teacher": {"MB": 4.0, "dev BLEU": 30.0},
        "student": {"MB": 1.0, "dev BLEU": 29.0},
        "student, greedy": {"MB": 1.0, "dev BLEU": 28.0},
    }
    text = make_table(
        {"teacher": "model.ckpt-9.npz", "student": "average model.ckpt-5.npz"}, found
    ).markdown()
    assert "|  | teacher | student | student, greedy |" in text
    assert "| dev BLEU | 30 | 29 | 28 |" in text
    assert "Teacher: model.ckpt-9.npz. Student: average model.ckpt-5.npz." in text
