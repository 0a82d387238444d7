"""Problems written for version 0.1: methods with their old names are refused when they are registered."""

import sys

import pytest

from t2t_revival import registry
from t2t_revival.errors import T2TError
from t2t_revival.problems import Text2TextProblem


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("prepare", "preprocess"),
        ("finish", "postprocess"),
        ("target", "encode_target"),
        ("drawn", "render"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda function: function, staticmethod, classmethod])
def test_an_old_name_is_refused_with_the_new_one(old, new, wrap):
    cls = type("UsrOld", (Text2TextProblem,), {old: wrap(lambda *arguments: arguments)})
    message = (
        rf"problem 'usr_old' has a method {old}, which is called {new} since version 0\.2 \(.*, line \d+\)"
    )
    with pytest.raises(T2TError, match=rf"{message}; rename it to {new}$"):
        registry.register_problem(cls)
    assert "usr_old" not in registry._PROBLEMS


def test_an_inherited_old_name_is_refused_too():
    base = type("UsrBase", (Text2TextProblem,), {"finish": lambda self, inputs, output: output})
    with pytest.raises(T2TError, match="problem 'usr_derived' has a method finish"):
        registry.register_problem(type("UsrDerived", (base,), {}))


def test_attributes_of_these_names_are_no_methods():
    cls = type("UsrTarget", (Text2TextProblem,), {"target": "de"})
    assert registry.register_problem(cls) is cls


def test_a_users_package_names_file_and_line(tmp_path):
    folder = tmp_path / "usr_old_names"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from t2t_revival import registry\n"
        "from t2t_revival.problems import Text2TextProblem\n"
        "@registry.register_problem\n"
        "class UsrOldNames(Text2TextProblem):\n"
        "    def finish(self, inputs, output):\n"
        "        return output\n"
    )
    with pytest.raises(T2TError, match=rf"method finish, .*postprocess .*{folder}/__init__\.py, line 5\)"):
        registry.import_usr_dir(str(folder))
    assert "usr_old_names" not in sys.modules
