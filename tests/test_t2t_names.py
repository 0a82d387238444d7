"""Names that tensor2tensor registered are distinguished from misspelt ones, and explained."""

import json
import re
from pathlib import Path

import pytest

from t2t_revival import T2TError, registry, t2t_names
from tests.support.tables import table

TABLES = Path(__file__).with_name("t2t_names.txt")
NAMES = json.loads((Path(__file__).parent / "reference" / "names.json").read_text())


@pytest.mark.parametrize(("name", "message"), table(TABLES, "problems"))
def test_problems(name: str, message: str) -> None:
    with pytest.raises(T2TError, match=f"^{re.escape(message)}"):
        registry.problem(name)


def test_each_problem_of_text_is_explained() -> None:
    names = NAMES["problems"].split()
    assert [name for name in names if not t2t_names.explain_problem(name)] == []
    assert {*map(t2t_names.problem_here, names)} <= {None, *registry.list_problems()}


@pytest.mark.parametrize(("name", "message"), table(TABLES, "hparams sets"))
def test_hparams_sets(name: str, message: str) -> None:
    with pytest.raises(T2TError, match=f"^{re.escape(message)}"):
        registry.hparams(name)


@pytest.mark.parametrize(("theirs", "ours", "answer"), table(TABLES, "problems of models"))
def test_what_a_model_is_of(theirs: str, ours: str, answer: str) -> None:
    assert t2t_names.is_problem(theirs, ours) == (answer == "yes")
