"""The web application, with a model that needs no weights."""

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from t2t_revival.addons.server.batching import BatchLimits
from t2t_revival.addons.server.requests import Limits
from t2t_revival.addons.server.service import Start
from t2t_revival.addons.server.versions import AVAILABLE, END, ServedModel, Version
from t2t_revival.serving.signatures import WITH_SAMPLING, WITH_TABLES
from tests.server.conftest import CapitalLetters, CapitalsInspector, error_of

OPTIONS = {"beam_size": 4, "alpha": 0.6, "extra_length": 50, "n": 1}
PREDICT = "/v1/models/capitals:predict"


def test_predict_of_rows_and_columns(client):
    rows = client.post(PREDICT, json={"instances": ["a", "b"]})
    assert rows.json() == {
        "predictions": [{"outputs": [text], "scores": [-0.1], "truncated": False} for text in "AB"]
    }
    columns = client.post(PREDICT, json={"inputs": {"inputs": ["a"]}})
    assert columns.json() == {"outputs": {"outputs": [["A"]], "scores": [[-0.1]], "truncated": [False]}}


def test_predict_with_options(client):
    request = {"signature_name": "translate_with_options", "instances": [{"inputs": "a", **OPTIONS, "n": 2}]}
    (answer,) = client.post(PREDICT, json=request).json()["predictions"]
    assert answer == {"outputs": ["A", "?"], "scores": [-0.1, -0.2], "truncated": False}


@pytest.mark.parametrize("kind", ["versions/2", "labels/stable"])
def test_predict_of_a_version(client, kind):
    response = client.post(f"/v1/models/capitals/{kind}:predict", json={"instances": ["a"]})
    assert response.json()["predictions"][0]["outputs"] == ["A"]


NOT_SERVED = [
    ("/v1/models/other:predict", 404, "Servable not found for request: Latest(other)"),
    ("/v1/models/capitals/versions/1:predict", 404, "Servable not found for request: Specific, 1(capitals)"),
    ("/v1/models/capitals/versions/3:predict", 404, "Servable not found for request: Specific, 3(capitals)"),
    ("/v1/models/capitals/labels/new:predict", 400, "Unrecognized servable version label: new"),
    ("/v1/models/capitals/labels/old:predict", 404, "Servable not found for request: Specific, 1(capitals)"),
    ("/v1/models/capitals/versions/x:predict", 400, "number: "),
    ("/v1/models/capitals:classify", 405, "Malformed request: POST /v1/models/capitals:classify"),
    ("/../../etc/passwd", 404, "Malformed request: POST"),
]


@pytest.mark.parametrize(("path", "status", "message"), NOT_SERVED)
def test_predict_of_what_is_not_served(client, path, status, message):
    assert message in error_of(client.post(path, json={"instances": ["a"]}), status)


def test_status(client):
    versions = client.get("/v1/models/capitals").json()["model_version_status"]
    assert [(one["version"], one["state"]) for one in versions] == [("3", "END"), ("2", "AVAILABLE")]
    assert versions[0]["status"] == {"error_code": "UNKNOWN", "error_message": "damaged"}
    assert client.get("/v1/models/capitals/versions/2").json()["model_version_status"] == versions[1:]
    assert client.get("/v1/models/capitals/labels/stable").json()["model_version_status"] == versions[1:]
    assert "version 9" in error_of(client.get("/v1/models/capitals/versions/9"), 404)
    unknown = error_of(client.get("/v1/models/other"), 404)
    assert unknown == "Could not find any versions of model other"


def test_metadata(client):
    found = client.get("/v1/models/capitals/metadata").json()
    assert found["model_spec"] == {"name": "capitals", "signature_name": "", "version": "2"}
    signatures = found["metadata"]["signature_def"]["signature_def"]
    assert signatures["serving_default"]["inputs"]["inputs"]["dtype"] == "DT_STRING"
    assert {*signatures["translate_with_options"]["inputs"]} == {"inputs", *OPTIONS}


def test_translate(client):
    answer = {"model": "capitals", "version": 2, "translations": [{"text": "A", "score": -0.1}]}
    assert client.post("/translate", json={"text": "a"}).json() == answer
    found = client.post("/translate", json={"text": ["a", "b"], "options": {"n": 2}}).json()["translations"]
    assert [one["text"] for one in found] == ["A", "B"]
    assert found[1]["nbest"] == [{"text": "B", "score": -0.1}, {"text": "?", "score": -0.2}]


def test_samples(make_client, capitals):
    client = make_client()
    options = {"sampling_method": "random", "sampling_temp": 0.5, "random_seed": 3, "n": 2}
    found = client.post("/translate", json={"text": "a", "options": options}).json()["translations"]
    assert [one["text"] for one in found[0]["nbest"]] == ["A", "?"]
    usual = {"alpha": 0.6, "extra_length": 50, "n": 2, "sampling_keep_top_k": -1}
    assert capitals.called == (WITH_SAMPLING, {**usual, "sampling_temp": 0.5, "random_seed": 3})
    del capitals.signature_defs[WITH_SAMPLING]
    refused = client.post("/translate", json={"text": "a", "options": {"sampling_method": "random"}})
    assert "this model does not support sampling_method: leave it out" in error_of(refused, 400)


def test_constraints_that_are_refused(make_client, capitals):
    client = make_client()
    options = {"constraints": ["Katze "], "avoid": ["Hund"], "terms": {"dog": "Dackel"}}
    request = {"text": ["the dog"], "options": options}
    for changes, part in (
        ({"avoid": ["Katze"]}, "line 1: the phrase 'Katze' has 'Katze', which is to be avoided"),
        ({"beam_size": 1}, "constraints cannot be combined with beam_size=1"),
        ({"split_sentences": True}, "split_sentences=True cannot be combined with constraints"),
    ):
        refused = client.post("/translate", json={"text": "a", "options": {**options, **changes}})
        assert part in refused.text
        assert refused.status_code in (400, 422)
    del capitals.signature_defs[WITH_TABLES]
    assert "this model does not support constraints, avoid and terms" in error_of(
        client.post("/translate", json=request), 400
    )


def test_sentences_are_translated_one_by_one(client, capitals):
    pytest.importorskip("sentencex")
    request = {"text": ["One. Two!  Three", "", "Four"], "options": {"split_sentences": True}}
    found = client.post("/translate", json=request).json()["translations"]
    assert [one["text"] for one in found] == ["ONE. TWO!  THREE", "", "FOUR"]
    assert found[0]["score"] == pytest.approx(-0.3)
    asked = [line for batch in capitals.batches for line in batch]
    assert sorted(asked) == ["Four", "One.", "Three", "Two!"]
    several = {"text": "a", "options": {"split_sentences": True, "n": 2}}
    assert error_of(client.post("/translate", json=several), 400) == (
        "split_sentences=True cannot be combined with more than one output: leave one of them out"
    )


def test_a_line_that_was_cut_is_marked(client, capitals):
    def predict(signature, inputs):
        return {**answer(signature, inputs), "truncated": [len(line) > 3 for line in inputs["inputs"]]}

    answer, capitals.predict = capitals.predict, predict
    found = client.post("/translate", json={"text": ["a", "long"]}).json()["translations"]
    assert [one.get("truncated") for one in found] == [None, True]
    assert client.post(PREDICT, json={"instances": ["long"]}).json()["predictions"][0]["truncated"] is True


def test_translate_line_by_line(client):
    lines = [f"line {n}" for n in range(500)]
    with client.stream("POST", "/translate", json={"text": lines, "stream": True}) as response:
        assert response.headers["content-type"] == "application/x-ndjson"
        found = [json.loads(line)["text"] for line in response.iter_lines()]
    assert found == [line.upper() for line in lines]


def test_a_stream_ends_with_its_error(client):
    lines = ["a"] * 100 + ["fault"]
    found = client.post("/translate", json={"text": lines, "stream": True}).text.splitlines()
    assert json.loads(found[-1]) == {"error": "capitals: a fault"}
    assert json.loads(found[0])["text"] == "A"


WRONG_REQUESTS = [
    ({}, "text: is missing"),
    ({"text": 5}, "text: 5 is not a string or an array"),
    ({"text": None}, "text: null is not a string or an array"),
    ({"text": {"a": 1}}, 'text: {"a": 1} is not a string or an array'),
    ({"text": ["a", None]}, "text[1]: null is not a string"),
    ({"text": ["a", ["b"], 3]}, 'text[1]: ["b"] is not a string'),
    ({"text": ["a"] * 2 + ["ü" * 99, 1.5]}, "text[3]: 1.5 is not a string"),
    ({"text": "a", "stream": "x"}, 'stream: "x" is not true or false'),
    ({"text": "a", "model": 3}, "model: 3 is not a string"),
    ({"text": "a", "options": []}, "options: [] is not an object"),
    ({"text": "a", "options": "n=2"}, 'options: "n=2" is not an object'),
    ({"text": "a", "options": {"n": 8}}, "options: n=8 must be at most beam_size, which is 4"),
    ({"text": "a", "options": {"n": "x"}}, 'options.n: "x" is not an integer'),
    ({"text": "a", "options": {"n": 1.5}}, "options.n: 1.5 is not an integer"),
    ({"text": "a", "options": {"n": None}}, "options.n: null is not an integer"),
    ({"text": "a", "options": {"alpha": "x" * 99}}, f'options.alpha: "{"x" * 59}... is not a number'),
    ({"text": "a", "options": {"tag": "a b"}}, 'options.tag: "a b" must have no spaces'),
    ({"text": "a", "options": {"avoid": "x"}}, 'options.avoid: "x" is not an array'),
    ({"text": "a", "options": {"avoid": ["x", 1]}}, "options.avoid[1]: 1 is not a string"),
    ({"text": "a", "options": {"constraints": [" "]}}, 'options.constraints[0]: " " must not be empty'),
    ({"text": "a", "options": {"terms": {"a": 1}}}, "options.terms.a: 1 is not a string"),
    ({"text": "a", "options": {"candidates": "x"}}, 'options.candidates: "x" is not an integer'),
    ({"text": "a", "options": {"mbr": "x"}}, "options.mbr: \"x\" must be '', 'chrf' or 'bleu'"),
    (
        {"text": "a", "options": {"unicode_form": "nfkc"}},
        "options.unicode_form: \"nfkc\" must be '', 'nfc' or 'nfd'",
    ),
    ({"text": "a", "beam_size": 1}, "unknown key 'beam_size'; did you mean options.beam_size?"),
    ({"text": "a", "beam": 1}, "unknown key 'beam'; did you mean options.beam_size or stream?"),
    ({"text": "a", "texts": 1}, "unknown key 'texts'; did you mean text or"),
    ({"text": "a", "options": {"beam": 1}}, "options: unknown key 'beam'; did you mean beam_size?"),
    ({"text": "a", "options": {"x": 1}}, "options: unknown key 'x'; known: alpha, avoid, beam_size, "),
    ({"text": "a", "options": {"{fault}": 1}}, "options: unknown key '{fault}'; known: "),
    ({"text": "a", "options": {"beam_size": 0}}, "options.beam_size: 0 must be at least 1"),
    ({"text": "a", "options": {"beam_size": 17}}, "beam_size must be at most 16 on this server"),
    ({"text": "a", "options": {"extra_length": 201}}, "extra_length must be at most 200 on this server"),
    ({"text": "a", "options": {"tag": "<2de>"}}, "this model has no tags: leave tag out"),
    ({"text": "a", "options": {"sampling_method": "x"}}, "options.sampling_method: \"x\" must be 'argmax'"),
    ({"text": "a", "options": {"sampling_temp": 0}}, "options.sampling_temp: 0 must be at least 0.001"),
    ({"text": "a", "options": {"random_seed": -1}}, "options.random_seed: -1 must be at least 0"),
    ({"text": "a", "options": {"sampling_method": "random", "n": 17}}, "n must be at most 16 on this"),
    (
        {"text": "a", "options": {"random_seed": 3}},
        "random_seed=3 has no effect without sampling_method=random",
    ),
    ({"text": "a", "options": {"sampling_method": "random", "beam_size": 2}}, "beam_size has no effect"),
    ({"text": "fault"}, "capitals: a fault"),
]


@pytest.mark.parametrize(("request_", "message"), WRONG_REQUESTS)
def test_wrong_requests_to_translate(client, request_, message):
    said = error_of(client.post("/translate", json=request_), 400)
    assert message in said
    assert not re.search("Input|Value error|lambda|validator|pydantic|valid ", said)


def test_any_content_type_is_json(client):
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        response = client.post("/translate", content=b'{"text": "a"}', headers={"Content-Type": kind})
        assert response.json()["translations"][0]["text"] == "A"


def test_tags_are_an_option_of_models_that_have_them(make_client, tmp_path):
    tagged = ServedModel("tagged", tmp_path)
    tagged.versions = {1: Version(1, CapitalLetters(tags=True), AVAILABLE)}
    client = make_client(tagged)
    request = {"text": "a", "model": "tagged", "options": {"tag": "<2de>"}}
    assert client.post("/translate", json=request).json()["model"] == "tagged"
    unnamed = client.post("/translate", json={"text": "a"})
    assert error_of(unnamed, 400) == "which model? Give one of capitals, tagged"


def test_bounds(make_client):
    client = make_client(limits=Limits(max_lines=3, max_characters=10), max_body=200)
    assert "4 lines: the server takes 3" in error_of(client.post("/translate", json={"text": ["a"] * 4}), 413)
    assert "more than 10 characters" in error_of(client.post(PREDICT, json={"instances": ["a" * 11]}), 413)
    large = json.dumps({"text": "a" * 300}).encode()
    assert "larger than 200 bytes" in error_of(client.post("/translate", content=large), 413)
    parts = (large[start : start + 50] for start in range(0, len(large), 50))  # without Content-Length
    assert "larger than 200 bytes" in error_of(client.post("/translate", content=parts), 413)


def test_a_full_queue_says_when_to_try_again(make_client, capitals):
    client = make_client(batch_limits=BatchLimits(max_queue=2, parallel=1))
    response = client.post("/translate", json={"text": ["a"] * 3})
    assert "the queue has 0 of 2 lines" in error_of(response, 503)
    assert response.headers["retry-after"] == "1"


def test_a_deadline(make_client, capitals):
    client = make_client(limits=Limits(timeout=0.05), batch_limits=BatchLimits(parallel=1))
    capitals.gate.clear()
    try:
        assert "no answer in the time" in error_of(client.post("/translate", json={"text": "a"}), 504)
    finally:
        capitals.gate.set()


def test_keys(make_client):
    client = make_client(api_keys=["one", "zwei-ü"])
    assert "no valid API key" in error_of(client.post(PREDICT, json={"instances": ["a"]}), 401)
    assert client.get("/metrics").status_code == 401
    assert client.get("/healthz").json() == {"status": "ok"}
    for headers in ({"Authorization": "Bearer one"}, {"X-API-Key": "one"}):
        assert client.post(PREDICT, json={"instances": ["a"]}, headers=headers).status_code == 200
    assert client.get("/metrics", headers={"Authorization": "Bearer on"}).status_code == 401


def test_other_sites_are_refused_unless_named(make_client):
    question = {"Origin": "https://site.example", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in make_client().options("/translate", headers=question).headers
    client = make_client(cors_origins=["https://site.example"])
    found = client.options("/translate", headers=question).headers
    assert found["access-control-allow-origin"] == "https://site.example"


def test_every_answer_has_security_headers(client):
    for response in (client.get("/healthz"), client.get("/nothing"), client.post(PREDICT, content=b"")):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in response.headers["content-security-policy"]


def test_readiness(client, served):
    assert client.get("/readyz").json() == {"status": "ready"}
    served.versions[2].state = END
    answer = client.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json() == {"status": "loading 1 of 1"}


@pytest.fixture
def gate():
    """An event for which models that are being loaded wait."""
    made = threading.Event()
    yield made
    made.set()


def loading_model(name, gate, loaded):
    def prepare(model):
        assert gate.wait(30)
        model.serve(1, loaded)

    return ServedModel(name, None, prepare=prepare, say=lambda line: None)


def state_of(client):
    answer = client.get("/readyz")
    return answer.status_code, answer.json()["status"]


def wait_for_state(client, status):
    ends = time.monotonic() + 10
    while state_of(client)[1] != status:
        assert time.monotonic() < ends, state_of(client)
        time.sleep(0.01)


def of_second(text="a"):
    """Requests of each route that needs a model."""
    return (
        ("POST", "/v1/models/second:predict", {"instances": [text]}),
        ("POST", "/v1/models/second/versions/1:predict", {"instances": [text]}),
        ("GET", "/v1/models/second/metadata", None),
        ("POST", "/explain", {"text": text, "model": "second"}),
        ("POST", "/attention", {"text": text, "model": "second"}),
        ("POST", "/translate", {"text": text, "model": "second"}),
        ("POST", "/translate", {"text": text, "model": "second", "stream": True}),
    )


def test_models_are_loaded_while_the_server_runs(make_client, served):
    gates = {name: threading.Event() for name in ("second", "third")}
    loaded = {name: CapitalLetters() for name in gates}
    client = make_client(*(loading_model(name, gates[name], loaded[name]) for name in gates))
    loaded["second"].gate.clear()
    assert state_of(client) == (503, "loading 2 of 3")
    assert client.get("/healthz").status_code == 200
    assert client.post("/translate", json={"text": "a", "model": "capitals"}).status_code == 200
    assert error_of(client.get("/v1/models/second"), 503) == "second is being loaded: try again soon"
    assert client.get("/models").json()["loading"] == ["second", "third"]
    gates["second"].set()
    wait_for_state(client, "loading 3 of 3")
    gates["third"].set()
    wait_for_state(client, "warming up 2 of 3")
    assert state_of(client)[0] == 503
    assert client.post("/translate", json={"text": "a", "model": "third"}).status_code == 200
    loaded["second"].gate.set()
    wait_for_state(client, "ready")
    assert state_of(client)[0] == 200
    called = [options for _, options in loaded["third"].calls]
    assert {signature for signature, _ in loaded["third"].calls} == {*loaded["third"].signature_defs}
    assert any(options.get("n") == 2 for options in called)  # n-best
    assert any(options.get("tables") for options in called)
    assert served.versions[2].model.calls == [("serving_default", {})]  # what was there is not called


def test_a_request_waits_for_a_model_that_is_being_loaded(make_client, gate):
    model = loading_model("second", gate, CapitalLetters())
    model.inspector = CapitalsInspector()
    model.inspector.attention_page = lambda asked: "a page"
    client = make_client(model)
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(client.request, method, path, json=body) for method, path, body in of_second()]
        time.sleep(0.5)
        assert not any(request.done() for request in asked)
        assert state_of(client) == (503, "loading 2 of 2")
        assert client.get("/healthz").status_code == 200
        gate.set()
    answers = [request.result() for request in asked]
    predict, _, metadata, explain, attention, translate, stream = answers
    assert [answer.status_code for answer in answers] == [200] * len(asked)
    assert predict.json()["predictions"][0]["outputs"] == ["A"]
    assert metadata.json()["model_spec"]["name"] == "second"
    assert explain.json()["text"] == "a"
    assert attention.json() == {"page": "a page"}
    assert translate.json()["translations"][0]["text"] == json.loads(stream.text)["text"] == "A"


def test_a_request_that_waited_is_checked_as_any_other(make_client, gate):
    client = make_client(loading_model("second", gate, CapitalLetters()))
    asked = {"instances": ["a"], "signature_name": "none"}
    with ThreadPoolExecutor() as pool:
        request = pool.submit(client.post, "/v1/models/second:predict", json=asked)
        gate.set()
    assert 'Serving signature name: "none" not found' in error_of(request.result(), 400)


@pytest.mark.parametrize(
    ("limits", "batch_limits"), [(Limits(timeout=0.1), None), (Limits(timeout=30), BatchLimits(max_queue=0))]
)
def test_a_request_does_not_wait_for_ever_nor_with_too_many(make_client, gate, limits, batch_limits):
    model = loading_model("second", gate, CapitalLetters())
    client = make_client(model, limits=limits, batch_limits=batch_limits)
    for method, path, body in of_second():
        began = time.monotonic()
        answer = client.request(method, path, json=body)
        assert error_of(answer, 503) == "second is being loaded: try again soon"
        assert answer.headers["retry-after"] == "1"
        assert time.monotonic() - began < 5


def test_a_request_does_not_wait_for_a_server_that_ends(make_client, gate):
    ending = threading.Event()
    start = Start(lambda: 1, lambda fault: None, ending.is_set)
    client = make_client(loading_model("second", gate, CapitalLetters()), start=start)
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(client.request, method, path, json=body) for method, path, body in of_second()]
        time.sleep(0.2)
        assert not any(request.done() for request in asked)
        ending.set()
        assert [request.result(5).status_code for request in asked] == [503] * 7


def test_a_client_that_is_gone_waits_no_longer(make_client, served, gate):
    client = make_client(loading_model("second", gate, CapitalLetters()))
    app = client.app
    sent = []

    async def call(method, path, body):
        messages = [{"type": "http.request", "body": json.dumps(body).encode()}]

        async def receive():
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": []}
        await app({**scope, "query_string": b"", "http_version": "1.1"}, receive, send)

    for one in of_second():
        began = time.monotonic()
        client.portal.call(call, *one)
        assert time.monotonic() - began < 5
    assert {message["status"] for message in sent if "status" in message} == {499}


def test_a_model_that_cannot_be_loaded_is_told(make_client, served, tmp_path):
    ended = threading.Event()
    faults = []

    def end(fault):
        faults.append(fault)
        ended.set()

    client = make_client(ServedModel("empty", tmp_path), start=Start(lambda: 1, end))
    assert ended.wait(10)
    assert str(faults[0]) == f"empty: {tmp_path}: no version of a model; t2t-exporter writes one"
    assert client.get("/readyz").json() == {"status": "loading 2 of 2"}


def test_metrics(client):
    client.post("/translate", json={"text": ["a", "b"]})
    client.post("/v1/models/capitals:predict", json={"signature_name": "describe", "instances": ["c"]})
    client.post(PREDICT, content=b"")
    text = client.get("/metrics").text
    assert 't2t_requests_total{method="translate",model="capitals",status="200"} 1.0' in text
    assert 't2t_requests_total{method="predict",model="capitals",status="400"} 1.0' in text
    assert 't2t_lines_total{model="capitals"} 2.0' in text
    assert 't2t_characters_total{model="capitals",side="output"} 2.0' in text
    assert "t2t_batch_lines_sum 3.0" in text, "the call of describe too"
    assert "t2t_queue_lines 0.0" in text
    assert 't2t_model_version{model="capitals"} 2.0' in text
    assert "process_resident_memory_bytes" in text


def test_the_document_of_the_api_names_all_paths(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/translate", "/v1/models/{name}:predict", "/v1/models/{name}/labels/{label}/metadata"} <= {
        *paths
    }


def test_a_fault_of_the_server_tells_nothing(client, capitals):
    capitals.predict = None
    assert (
        error_of(client.post("/translate", json={"text": "a"}), 500)
        == "the server failed; its log has the reason"
    )
