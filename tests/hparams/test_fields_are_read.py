"""No dead hyperparameters: every field of `HParams` is read by the code that it is meant for."""

import ast
import dataclasses
import inspect

from t2t_revival import HParams
from tests.support.source_tree import MODULES, parsed


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


def test_each_field_is_read() -> None:
    read = set().union(*(read_in(parsed(path)) for path in MODULES.values()))
    for name, fields in read_by_properties().items():
        if name in read:
            read |= fields
    assert {field.name for field in dataclasses.fields(HParams)} <= read


def test_what_is_not_read_is_found() -> None:
    code = "h.a = 1; hparams.b; self.hparams.c; load_hparams('x').d; other.e"
    assert read_in(ast.parse(code)) == {"b", "c", "d"}
