"""YAML files that people write."""

import pytest

from t2t_revival import T2TError
from t2t_revival.utils import checked_yaml


def test_a_file(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: [1, {b: x}]\n")
    assert checked_yaml.load(path) == {"a": [1, {"b": "x"}]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\nb: {c: 1, c: 2}\n", "line 2: 'c' is given twice"),
        (b"a: 1\n  b: 2\n", "line 2: not valid YAML"),
        (b"\xff", "cannot be read (it is not UTF-8)"),
        (b"a: " + b"[" * 10_000, "not valid YAML"),
    ],
)
def test_wrong_files(tmp_path, content, message):
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(T2TError) as caught:
        checked_yaml.load(path)
    assert message in str(caught.value)


TYPES = {"name": str, "share": float, "many": (str, list), "labels": dict}


def test_keys_of_the_right_types():
    checked_yaml.check_keys("it", {"name": "a", "share": 1, "many": ["a"], "labels": {}}, TYPES)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "it: not a mapping of name, share, many, labels"),
        ({"nmae": "a"}, "it: unknown key 'nmae'; known are name, share, many, labels"),
        ({"name": 1}, "it: name is 1, not a text"),
        ({"share": True}, "it: share is True, not a number"),
        ({"labels": []}, "it: labels is [], not a mapping"),
    ],
)
def test_wrong_keys(values, message):
    with pytest.raises(T2TError) as caught:
        checked_yaml.check_keys("it", values, TYPES)
    assert message in str(caught.value)
