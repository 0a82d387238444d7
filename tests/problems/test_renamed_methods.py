"""Problems written for version 0.1: methods with their old names are refused when they are registered."""

import pytest

from t2t_revival import T2TError, Text2TextProblem, registry


@pytest.mark.parametrize(
    ("old", "new"),
    [("prepare", "preprocess"), ("finish", "postprocess"), ("target", "encode_target"), ("drawn", "render")],
)
def test_an_old_name_is_refused_with_the_new_one(old, new):
    base = type("UsrBase", (Text2TextProblem,), {old: staticmethod(lambda *arguments: arguments)})
    message = (
        rf"problem 'usr_old' has a method {old}, which is called {new} since version 0\.2 \(.*, line \d+\)"
    )
    with pytest.raises(T2TError, match=rf"{message}; rename it to {new}$"):
        registry.register_problem(type("UsrOld", (base,), {}))
    assert "usr_old" not in registry.list_problems()


def test_attributes_of_these_names_are_no_methods():
    cls = type("UsrTarget", (Text2TextProblem,), {"target": "de"})
    assert registry.register_problem(cls) is cls
