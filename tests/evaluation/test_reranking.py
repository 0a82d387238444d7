"""Reranking: candidates of n-best lists, their features, the directions of models, and faults of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2t_revival import T2TError
from t2t_revival.addons.rerank.reranking import (
    Candidate,
    NBest,
    _is_reverse,
    check_weights,
    load_weights,
    log_probs,
    make_table,
    rerank,
)
from t2t_revival.decoding.outputs import Score
from t2t_revival.decoding.preprocessor import Truncation
from t2t_revival.errors import LineError
from t2t_revival.utils import checked_json

SOURCES = ["a bc", " ", "def", "gh"]
LINES = ["x y\t-1.5\txyz\t-2\t\t-inf", "\t0.00", "\t-0.5\tz\t-3", "\t-0.25"]


@pytest.fixture
def nbest() -> NBest:
    return NBest.parse(LINES, SOURCES, "lists")


class FakeTranslator:
    """Scores each pair by a function of its sides, as if each had four tokens."""

    def __init__(self, score: Callable[[str, str], float]) -> None:
        self._score = score

    def iterate_scores(
        self, pairs: Iterable[tuple[str, str]], on_truncation: Any, on_progress: Any
    ) -> list[Score]:
        pairs = list(pairs)
        for number, (source, target) in enumerate(pairs, start=1):
            if source == "long":
                on_truncation(Truncation(number, 9, 8))
            if target == "bad":
                raise LineError(number, "the output has 9 tokens")
        return [Score(self._score(*pair), 4) for pair in pairs]


def scores_of(nbest: NBest, score: Callable[[str, str], float], reverse: bool = False, **more: Any) -> Any:
    return log_probs(FakeTranslator(score), nbest, reverse, "lists", **more)  # type: ignore[arg-type]


def test_candidates(nbest: NBest) -> None:
    assert nbest.candidates == [
        [Candidate("x y", -1.5), Candidate("xyz", -2)],
        [Candidate("", 0)],
        [Candidate("z", -3)],
        [Candidate("", -0.25)],
    ], "an empty output is one where there is no other"
    assert nbest.width == 2
    assert list(nbest.places()) == [(0, 0), (0, 1)], "nothing is to be chosen in the other lines"


def test_scores_are_per_token_and_of_the_side_that_is_predicted(nbest: NBest) -> None:
    forward = scores_of(nbest, lambda source, target: -len(target) if source == "a bc" else np.nan)
    np.testing.assert_allclose(forward, [[-0.75, -0.75], [0, 0], [0, 0], [0, 0]])
    back = scores_of(nbest, lambda source, target: -len(source) if target == "a bc" else np.nan, True)
    np.testing.assert_allclose(back, forward)


def test_features(nbest: NBest) -> None:
    scores = np.arange(8.0).reshape(4, 2)
    table = make_table(nbest, [scores])
    np.testing.assert_array_equal(table.there, [[1, 1], [1, 0], [1, 0], [1, 0]])
    np.testing.assert_allclose(table.features[0], [[-1.5, 0, 2 / 3], [-2, 1, 1]])
    np.testing.assert_allclose(table.features[2, 0], [-3, 4, 1 / 3])
    assert rerank(nbest, table, np.array([1.0, 0.0, 0.0])) == ["x y", "", "z", ""]
    assert rerank(nbest, table, np.array([1.0, 0.6, 0.0])) == ["xyz", "", "z", ""]


def test_faults_name_the_line(nbest: NBest) -> None:
    with pytest.raises(T2TError, match="lists, line 1: the model's weights contain NaN or infinity"):
        scores_of(nbest, lambda *_: float("nan"))
    lists = NBest.parse(["a\t0", "a\t-1\tbad\t-2"], ["one", "two"], "lists")
    with pytest.raises(T2TError, match="lists, line 2: the output has 9 tokens"):
        scores_of(lists, lambda *_: 0.0)
    notes: list[str] = []
    lists = NBest.parse(["a\t-1\tb\t-2"] * 2, ["long", "two"], "lists")
    scores_of(lists, lambda *_: 0.0, on_note=notes.append)
    assert notes == ["warning: lists: texts of 1 lines are longer than max_length, and were truncated"]


@pytest.mark.parametrize(
    ("problem", "lists", "reverse"),
    [
        ("translate_ende", "translate_ende", False),
        ("translate_ende_rev", "translate_ende", True),
        ("translate_ende", "translate_ende_rev", True),
        ("translate_ende_rev", "translate_ende_rev", False),
        ("translate_many", "translate_many", False),
    ],
)
def test_directions(problem: str, lists: str, reverse: bool) -> None:
    assert _is_reverse(problem, lists, Path("out")) is reverse


def test_models_of_other_languages_are_refused() -> None:
    for problem in ("translate_enfr", "translate_enfr_rev", "translate_many"):
        with pytest.raises(T2TError, match=f"out has a model of {problem} .*give models of these two lang"):
            _is_reverse(problem, "translate_ende", Path("out"))


def test_a_file_of_weights_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "rerank.json"
    checked_json.save(path, {"weights": {"score": 1.0}, "bleu_after": 3.0})
    content = path.read_text()
    path.write_text(content.replace("3.0", "4.0"))
    with pytest.raises(T2TError, match="its content does not match its checksum; tune weights"):
        load_weights(path, ["score"])
    path.write_text(content)
    np.testing.assert_array_equal(load_weights(path, ["score"]), [1.0])
    with pytest.raises(T2TError, match="the weight inf of 'b' is no finite number"):
        check_weights([1, float("inf")], ["a", "b"], "here")
