"""No dead hyperparameters: every field of `HParams` is read by the code that it is meant for."""

import ast
import dataclasses
import inspect
from pathlib import Path

import pytest

import t2t_revival.problems
from t2t_revival.hparams import HParams

PACKAGE = Path(t2t_revival.__file__).parent
FOLDERS = (PACKAGE, Path(t2t_revival.problems.__file__).parent)
FIELDS = [field.name for field in dataclasses.fields(HParams)]


def is_hparams(node: ast.expr) -> bool:
    """Finds expressions that are called hparams: `h`, `hparams`, `model.hparams`, `load_hparams(...)`."""
    if isinstance(node, ast.Call):
        return is_hparams(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr.endswith("hparams")
    return isinstance(node, ast.Name) and (node.id == "h" or node.id.endswith("hparams"))


def read_in(tree: ast.AST, names: tuple[str, ...] = ()) -> set[str]:
    """Attributes that are read of anything called hparams, or of a name in `names`."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and (is_hparams(node.value) or (isinstance(node.value, ast.Name) and node.value.id in names))
    }


def read_by_properties() -> dict[str, set[str]]:
    """Returns the fields that each property of `HParams` reads."""
    tree = ast.parse(inspect.getsource(HParams))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {
        function.name: read_in(function, names=("self",))
        for function in functions
        if any(isinstance(d, ast.Name) and d.id == "property" for d in function.decorator_list)
    }


@pytest.fixture(scope="module")
def read() -> set[str]:
    files = [path for folder in FOLDERS for path in folder.rglob("*.py")]
    attributes = set().union(*(read_in(ast.parse(path.read_bytes(), str(path))) for path in files))
    for name, fields in read_by_properties().items():
        if name in attributes:
            attributes |= fields
    return attributes


@pytest.mark.parametrize("field", FIELDS)
def test_field_is_read(field: str, read: set[str]) -> None:
    assert field in read


def test_what_is_not_read_is_found() -> None:
    code = "h.a = 1; hparams.b; self.hparams.c; load_hparams('x').d; other.e"
    assert read_in(ast.parse(code)) == {"b", "c", "d"}
