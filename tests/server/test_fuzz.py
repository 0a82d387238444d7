"""Any request has an answer that is no fault of the server.

Bodies are spelled here, not made by an encoder of JSON: one that is sound writes no lone surrogate, no key
twice and no number of a thousand digits. Text of Hypothesis, and of tools that make requests of an
OpenAPI document, has no surrogates either.
"""

import asyncio
import json
import os
from urllib.parse import unquote_to_bytes

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.addons.server.app import create_app
from t2t_revival.addons.server.versions import AVAILABLE, ServedModel, Version
from t2t_revival.serving.signatures import DTYPES, WITH_OPTIONS
from tests.server.conftest import CapitalLetters, CapitalsInspector

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", 4 * settings().max_examples))  # most mean nothing
SIGNATURES = ["serving_default", "translate_with_options", "translate_with_sampling", "score", ""]
FIELDS = {
    "/translate": ["text", "model", "options", "stream"],
    "/explain": ["text", "model", "output", "prefix", "tag"],
    "/attention": ["text", "model", "output", "prefix", "tag"],
    ":predict": ["signature_name", "instances", "inputs"],
}
OPTIONS = [*DTYPES, "sampling_method", "split_sentences", "terms"]


class Strict(CapitalLetters):
    """Takes only what an exported model takes."""

    def predict(self, signature, inputs):
        arrays = {
            name: np.array(values, object if DTYPES[name] == "string" else DTYPES[name])
            for name, values in inputs.items()
        }
        "".join(inputs["inputs"]).encode()
        if not all((array >= 1).all() for name, array in arrays.items() if name in ("n", "beam_size")):
            raise T2TError("capitals: n must be between 1 and beam_size")
        return super().predict(signature, inputs)


def spelled(value):
    """Returns the JSON of a kind of value and its content: of an object, pairs; of a word, as it is."""
    kind, content = value
    if kind == "text":
        return json.dumps(content)
    if kind == "list":
        return f"[{','.join(map(spelled, content))}]"
    if kind == "object":
        return "{" + ",".join(f"{json.dumps(key)}:{spelled(each)}" for key, each in content) + "}"
    return content


HOSTILE = ["\ud800", "x\udfffy", "\0"]
TEXTS = (
    st.sampled_from(HOSTILE) | st.sampled_from(["", "a dog", "capitals", "tagged"]) | st.text(st.characters())
)
NUMBERS = (
    st.sampled_from(["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "-0", "4", "1", "0.6", "2147483648"])
    | st.integers().map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.builds(lambda digit, count: str(digit) * count, st.integers(1, 9), st.integers(1, 5000))
)
SCALARS = st.builds(lambda text: ("text", text), TEXTS) | st.builds(
    lambda word: ("word", word), NUMBERS | st.sampled_from(["true", "false", "null"])
)
KEYS = st.sampled_from([*OPTIONS, "b64"]) | TEXTS
DEEP = st.builds(
    lambda opened, closed, levels: ("word", opened * levels + "1" + closed * levels),
    *(st.just("["), st.just("]"), st.integers(1, 1200)),
) | st.builds(lambda levels: ("word", '{"a":' * levels + "1" + "}" * levels), st.integers(1, 1200))
VALUES = st.recursive(
    SCALARS | DEEP,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda each: ("list", each))
        | st.lists(st.tuples(KEYS, inner), max_size=4).map(lambda each: ("object", each))
    ),
    max_leaves=8,
)
A_TEXT = ("text", "a dog")
OPTIONS_OF_A_REQUEST = st.lists(
    st.tuples(st.sampled_from(OPTIONS), SCALARS), max_size=3, unique_by=lambda pair: pair[0]
)


def body_of(fields):
    """Objects that have some of the fields, among them those that nearly all requests need."""
    usual = {
        "text": st.just(A_TEXT) | st.just(("list", [A_TEXT, A_TEXT])),
        "options": OPTIONS_OF_A_REQUEST.map(lambda pairs: ("object", pairs)),
        "signature_name": st.sampled_from(SIGNATURES).map(lambda name: ("text", name)),
        "inputs": st.builds(
            lambda pairs: ("object", [("inputs", ("list", [A_TEXT])), *pairs]), OPTIONS_OF_A_REQUEST
        ),
        "instances": st.builds(
            lambda pairs: ("list", [("object", [("inputs", A_TEXT), *pairs])]), OPTIONS_OF_A_REQUEST
        ),
    }
    pair = st.sampled_from(fields).flatmap(
        lambda name: st.tuples(st.just(name), usual.get(name, SCALARS) | VALUES)
    )
    strange = st.tuples(KEYS, VALUES)
    first = st.tuples(st.just(fields[0]), usual.get(fields[0], VALUES))
    return st.builds(
        lambda one, more: ("object", [one, *more]), first, st.lists(pair | strange, max_size=4)
    ).map(lambda value: spelled(value).encode())


SEGMENT = st.sampled_from([b"capitals", b"tagged", b"%ff", b"%ed%a0%80", b"a%00b", b"9" * 400]) | st.binary(
    min_size=1, max_size=8
).map(lambda raw: raw.replace(b"/", b"%2f").replace(b"?", b"%3f"))
PATHS = st.one_of(
    st.sampled_from([b"/translate", b"/explain", b"/attention"]),
    st.builds(
        lambda name, kind, end: b"/v1/models/" + name + kind + end,
        SEGMENT,
        st.just(b"") | SEGMENT.map(b"/versions/".__add__) | SEGMENT.map(b"/labels/".__add__),
        st.sampled_from([b":predict", b"/metadata", b""]),
    ),
    st.sampled_from([b"/", b"/models", b"/healthz", b"/readyz", b"/metrics", b"/openapi.json", b"/page.js"]),
    SEGMENT.map(b"/".__add__),
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            [b"host", b"content-type", b"content-encoding", b"content-length", b"origin", b"authorization"]
        ),
        st.sampled_from(
            [b"", b"[", b"gzip", b"application/json; charset=\xff", b"multipart/form-data", b"9" * 5000]
        )
        | st.binary(max_size=12),
    ),
    max_size=3,
)
REQUESTS = st.one_of(
    *(
        st.tuples(
            st.just(b"POST"),
            st.just(b"/v1/models/capitals:predict" if path == ":predict" else path.encode()),
            body_of(fields) | st.binary(max_size=40) | VALUES.map(lambda value: spelled(value).encode()),
            HEADERS | st.just([]),
        )
        for path, fields in FIELDS.items()
    ),
    st.tuples(
        st.sampled_from([b"GET", b"HEAD", b"POST", b"OPTIONS", b"PUT"]),
        PATHS,
        st.just(b"") | st.binary(max_size=20),
        HEADERS,
    ),
)


def served(name, **settings):
    model = ServedModel(name, None, inspector=CapitalsInspector(**settings))
    model.versions = {1: Version(1, Strict(bool(settings)), AVAILABLE)}
    return model


async def ask(app, method, path, body, headers):
    """Calls the application as a server does; returns status, headers and body of its answer."""
    plain, _, query = path.partition(b"?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method.decode(),
        "scheme": "http",
        "path": unquote_to_bytes(plain).decode("utf-8", "replace"),
        "raw_path": plain,
        "query_string": query,
        "headers": [(name.lower(), value) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8501),
        "root_path": "",
    }
    messages, sent = [{"type": "http.request", "body": body, "more_body": False}], []

    async def receive():
        if messages:
            return messages.pop()
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    async with app.router.lifespan_context(app):
        await app(scope, receive, send)
    start, *parts = sent
    return start["status"], dict(start["headers"]), b"".join(part.get("body", b"") for part in parts)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(REQUESTS)
@example((b"POST", b"/translate", b'{"text": "a", "model": "\\ud800"}', []))
@example((b"POST", b"/v1/models/capitals:predict", b'{"signature_name": "\\ud800", "inputs": ["a"]}', []))
@example((b"POST", b"/v1/models/capitals:predict", b'["\\ud800"]', []))
@example((b"POST", b"/v1/models/capitals:predict", b"[" * 985 + b"]" * 985, []))
@example((b"GET", b"/nothing/", b"", [(b"host", b"[")]))
def test_no_request_is_answered_with_a_fault_of_the_server(request_):
    app = create_app({"capitals": served("capitals"), "tagged": served("tagged", tags=["<2de>"])})
    status, headers, body = asyncio.run(ask(app, *request_))
    assert status < 500, body
    if status >= 400 and request_[0] != b"HEAD":
        assert headers[b"content-type"] == b"application/json"
        assert json.loads(body.decode())["error"].strip()


NOT_FOUND = "Servable not found for request: Latest({})"
NUMBER = "9" * 400
ROW = '"alpha": 0.6, "extra_length": 5, "n": 1, "beam_size": 2'


@pytest.mark.parametrize(
    ("path", "body", "part"),
    [
        ("/translate", r'{"text": "a", "\ud800": 1}', "unknown key '"),
        ("/translate", r'{"text": "a", "options": {"\udfff": 1}}', "options: unknown key '"),
        ("/translate", '{"text": "a", "options": {"alpha": NaN}}', "options.alpha: "),
        ("/translate", '{"text": "a", "options": {"alpha": Infinity}}', "options.alpha: "),
        (
            "/translate",
            f'{{"text": "a", "options": {{"n": {NUMBER}}}}}',
            "a number has 400 digits, more than 300",
        ),
        ("/translate", '{"text": "a", "text": "b"}', 'an object has the key "text" twice'),
        (
            "/translate",
            '{"text": "a", "options": {"n": 3, "beam_size": 2}}',
            "n=3 must be at most beam_size, which is 2",
        ),
        ("/translate", "[" * 100_000, "JSON Parse error: "),
        (":predict", r'{"signature_name": "\ud800", "inputs": ["a"]}', r"\ud800"),
        (":predict", r'["\ud800"]', r"\ud800"),
        (":predict", r'{"inputs": {"inputs": ["a"], "\udfff": 1}}', r"unknown input: \udfff"),
        (":predict", f'{{"inputs": ["a"], "x": {NUMBER}}}', "a number has 400 digits"),
        (":predict", '{"inputs": ["a"], "inputs": ["b"]}', 'an object has the key "inputs" twice'),
        (
            ":predict",
            f'{{"signature_name": "{WITH_OPTIONS}", "instances": [{{"inputs": "a", {ROW}, "tag": 1}}]}}',
            "keys must be equal to",
        ),
        (":predict", '{"signature_name": "%s", "inputs": ["a"]}' % ("x" * 5000), "xxx..."),
    ],
)
def test_messages_of_wrong_requests(client, path, body, part):
    response = client.post("/v1/models/capitals:predict" if path == ":predict" else path, content=body)
    assert response.status_code == 400
    message = response.json()["error"]
    assert part in message
    assert len(message) < 1100


def test_an_unknown_model_is_named_by_what_can_be_encoded(client):
    response = client.post("/translate", content=r'{"text": "a", "model": "\ud800"}')
    assert (response.status_code, response.json()["error"]) == (404, NOT_FOUND.format(r"\ud800"))


def test_a_number_that_no_float32_holds_is_a_float(client, capitals):
    options = {"alpha": 10**299, "extra_length": 5, "n": 1, "beam_size": 2}
    request = {"signature_name": WITH_OPTIONS, "instances": [{"inputs": "a", **options}]}
    assert client.post("/v1/models/capitals:predict", json=request).status_code == 200
    assert capitals.called[1]["alpha"] == 1e299


def test_a_packed_body_is_refused_by_its_header(client):
    response = client.post("/translate", content=b"\x1f\x8b\x08", headers={"Content-Encoding": "gzip"})
    assert response.status_code == 415
    assert response.json()["error"] == "Content-Encoding: gzip: send the body as it is, in JSON"


@pytest.mark.parametrize(
    "path", ["/", "/page.js", "/healthz", "/readyz", "/models", "/metrics", "/openapi.json"]
)
def test_a_head_is_a_get_without_its_body(client, path):
    full, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == full.headers["content-type"]
    assert client.head("/translate").status_code == 405
    assert client.head("/v1/models/capitals").status_code == 200
    assert client.head("/v1/models/capitals/metadata").status_code == 200
