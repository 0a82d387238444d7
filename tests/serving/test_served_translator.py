"""Arguments of `ServedTranslator`: as those of `Translator`."""

import pytest

from t2t_revival import LineConstraints, T2TError
from t2t_revival.serving.served_translator import ServedTranslator


class Echo:
    """A served model whose outputs are its inputs."""

    where = "echo"

    def predict(self, signature, inputs):
        return {
            "outputs": [[line] for line in inputs["inputs"]],
            "scores": [[-1.0] for _ in inputs["inputs"]],
            "truncated": [False for _ in inputs["inputs"]],
        }


TRANSLATOR = ServedTranslator(Echo())


def test_a_single_string_is_a_line():
    ((output,),) = TRANSLATOR.nbest("a cat")
    assert output.text == "a cat"
    assert TRANSLATOR.nbest(line for line in ["a cat"]) == [[output]]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["a", None], 'line 2: None is not a string; "" is an empty line'),
        (["a", b"b"], "line 2: b'b' is not a string"),
        (None, "lines: None is of type NoneType: give a list"),
        ({"a": 1}, "lines: {'a': 1} is of type dict: give a list"),
    ],
)
def test_what_is_no_line_is_named(lines, fault):
    with pytest.raises(T2TError, match=fault):
        TRANSLATOR.nbest(lines)


@pytest.mark.parametrize(
    ("constraints", "fault"),
    [
        (["cat"], "line 1: constraints: 'cat' is not LineConstraints or None"),
        ("cat", "constraints: 'cat' is of type str: give a list"),
        ([LineConstraints(("a",))] * 2, "2 constraints for 1 lines: give one for each, or None"),
    ],
)
def test_constraints_of_a_wrong_kind(constraints, fault):
    with pytest.raises(T2TError, match=fault):
        TRANSLATOR.nbest(["a"], constraints=constraints)
