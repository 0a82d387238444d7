"""Predict requests as TensorFlow Serving's REST API has them."""

import base64
import json

import pytest

from t2t_revival.addons.server.predict import Call, RequestError, format_predict, parse_predict
from t2t_revival.serving.signatures import DEFAULT, WITH_OPTIONS
from tests.server.conftest import CapitalLetters

PLAIN, TAGGED = CapitalLetters().signature_defs, CapitalLetters(tags=True).signature_defs
OPTIONS = {"beam_size": 4, "alpha": 0.6, "extra_length": 50, "n": 2}


def parse(request, signatures=PLAIN):
    return parse_predict(json.dumps(request).encode(), signatures)


def with_options(**request):
    return {"signature_name": WITH_OPTIONS, **request}


def test_an_input_with_a_default_may_be_left_out():
    assert "tag" not in parse(with_options(instances=[{"inputs": "a", **OPTIONS}]), TAGGED).columns
    given_tag = {"inputs": ["a", "b"], **OPTIONS, "tag": "<2de>"}
    assert parse(with_options(inputs=given_tag), TAGGED).columns["tag"] == ["<2de>", "<2de>"]


def test_texts_in_base64():
    text = base64.b64encode("Größe".encode()).decode()
    assert parse({"instances": [{"b64": text}]}).columns == {"inputs": ["Größe"]}
    assert parse({"inputs": [{"b64": text}]}).columns == {"inputs": ["Größe"]}


ROW = {"inputs": "a", **OPTIONS}


WRONG_REQUESTS = [
    ([], "JSON Value: [] Is not object"),
    ({}, "Missing 'inputs' or 'instances' key"),
    ({"instances": ["a"], "inputs": ["a"]}, "expecting only one of 'inputs' or 'instances' keys to exist"),
    ({"instances": "a"}, "Expecting 'instances' to be a list/array"),
    ({"instances": []}, "No values in 'instances' array"),
    ({"instances": ["a", 1]}, "inputs: JSON Value: 1 is not of expected type: string"),
    ({"instances": [["a"]]}, 'inputs: JSON Value: ["a"] is not of expected type: string'),
    ({"instances": [{"text": "a"}]}, 'JSON object: {"text": "a"} keys must be equal to: inputs'),
    ({"instances": [{"inputs": "a"}, "b"]}, "Failed to process element: 1 of 'instances' list"),
    ({"instances": [{"b64": "?"}]}, "inputs: Unable to base64 decode"),
    ({"signature_name": 1, "instances": ["a"]}, "'signature_name' key must be a string value."),
    ({"signature_name": "x", "instances": ["a"]}, 'Serving signature name: "x" not found in signature def'),
    (with_options(instances=["a"]), "Failed to process element: 0 of 'instances' list"),
    (with_options(instances=[{**ROW, "n": 1.5}]), "n: JSON Value: 1.5 is not of expected type: int32"),
    (with_options(instances=[{**ROW, "n": True}]), "n: JSON Value: true is not of expected type: int32"),
    (with_options(instances=[{**ROW, "n": 2**31}]), "n: JSON Value: 2147483648 is not of expected type"),
    (with_options(inputs=["a"]), "inputs is a plain value/list, but expecting an object with alpha"),
    (with_options(inputs={"inputs": ["a"]}), "Missing named input: alpha in 'inputs' object."),
    (with_options(inputs={**ROW, "inputs": ["a"], "x": 1}), "'inputs' object has an unknown input: x"),
    (with_options(inputs={**ROW, "inputs": ["a"] * 3, "n": [1, 2]}), "n must be a scalar, or have one value"),
    ({"inputs": "a"}, "inputs must be a list of texts"),
    ({"inputs": {"inputs": None}}, "inputs must be a list of texts"),
]


@pytest.mark.parametrize(("request_", "message"), WRONG_REQUESTS)
def test_wrong_requests(request_, message):
    with pytest.raises(RequestError) as caught:
        parse(request_)
    assert message in str(caught.value)
    assert caught.value.status == 400


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_bodies_that_are_no_json(body):
    with pytest.raises(RequestError, match="JSON Parse error"):
        parse_predict(body, PLAIN)


def test_answers_have_the_form_of_their_requests():
    found = {"outputs": [[b"A", b"?"], ["Ä"]], "scores": [[-0.10000000149011612, -1e9], [0.0]]}
    rows = [{"outputs": ["A", "?"], "scores": [-0.1, -1e9]}, {"outputs": ["Ä"], "scores": [0.0]}]
    assert format_predict(Call(DEFAULT, {}, True), found) == {"predictions": rows}
    columns = {"outputs": [["A", "?"], ["Ä"]], "scores": [[-0.1, -1e9], [0.0]]}
    assert format_predict(Call(DEFAULT, {}, False), found) == {"outputs": columns}
