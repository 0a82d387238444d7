"""The page's files, explanations and trees, with models that need no weights."""

import json
import threading
import time

from t2t_revival import registry
from t2t_revival.addons.server import service
from t2t_revival.addons.server.requests import Limits
from t2t_revival.addons.server.versions import AVAILABLE, ServedModel, Version
from tests.server.conftest import CapitalsInspector, Parser, error_of


def test_the_page_and_its_files(client):
    for path, kind in (("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")):
        response = client.get(path)
        assert response.status_code == 200
        assert response.headers["content-type"].startswith(kind)
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy


def test_the_page_needs_no_key_but_what_it_asks_for_does(make_client):
    client = make_client(api_keys=["secret"])
    assert client.get("/").status_code == client.get("/page.js").status_code == 200
    assert client.get("/models").status_code == 401
    assert client.get("/models", headers={"X-API-Key": "secret"}).status_code == 200


def test_models_of_the_page(make_client, served, tmp_path):
    parser = ServedModel("parser", tmp_path, problem=registry.problem("parse_wsj"))
    parser.versions = {1: Version(1, Parser(), AVAILABLE)}
    served.inspector = CapitalsInspector()
    loading = ServedModel("loading", tmp_path)
    answer = make_client(parser, loading).get("/models").json()
    capitals, trees = answer["models"]
    assert answer["loading"] == ["loading"]
    assert (capitals["name"], capitals["version"], capitals["max_beam_size"]) == ("capitals", 2, 16)
    assert (capitals["explains"], capitals["trees"], capitals["has_tags"]) == (True, False, False)
    assert capitals["training"]["score"] == {"name": "BLEU", "value": 29.5}
    assert (trees["explains"], trees["trees"], trees["training"]) == (False, True, None)


def test_an_explanation(make_client, served):
    served.inspector = CapitalsInspector()
    answer = make_client().post("/explain", json={"text": "a dog", "output": "A DOG"}).json()
    assert answer["words"] == [{"start": 0, "end": 1}, {"start": 2, "end": 5}]
    assert [word["probability"] for word in answer["output_words"]] == [0.99, 0.99]


def test_what_is_not_explained(make_client, served):
    client = make_client()
    assert "is an exported model" in error_of(client.post("/explain", json={"text": "a"}), 400)
    served.inspector = CapitalsInspector()
    assert error_of(client.post("/explain", json={"text": "unexplained"}), 400) == "nothing to explain"
    assert "characters: split it" in error_of(client.post("/explain", json={"text": "a" * 20_001}), 413)
    assert "output" in error_of(client.post("/explain", json={"text": "a", "output": 1}), 400)
    assert "text" in error_of(client.post("/attention", json={}), 400)


def test_explanations_wait_in_a_queue_of_their_own(make_client, served, monkeypatch):
    monkeypatch.setattr(service, "MAX_INSPECTIONS", 1)
    served.inspector = CapitalsInspector()
    served.inspector.gate.clear()
    client = make_client(limits=Limits(timeout=3))
    answers = []
    asked = {"text": "a", "output": "A"}
    waiting = threading.Thread(target=lambda: answers.append(client.post("/explain", json=asked)))
    waiting.start()
    while not served.inspector.asked:
        time.sleep(0.01)
    full = client.post("/explain", json=asked)
    assert "requests for explanations wait" in error_of(full, 503)
    assert full.headers["retry-after"]
    assert client.post("/translate", json={"text": "a"}).status_code == 200
    waiting.join()
    assert "no answer in the time" in error_of(answers[0], 504)
    served.inspector.gate.set()
    assert client.post("/explain", json=asked).status_code == 200


def test_a_parsers_tokeniser_does_not_keep_others_waiting(make_client, tmp_path, monkeypatch):
    problem = registry.problem("parse_wsj")
    gate = threading.Event()
    monkeypatch.setattr(type(problem), "preprocess", lambda self, line, tokenized: gate.wait(10) and line)
    parser = ServedModel("parser", tmp_path, problem=problem)
    parser.versions = {1: Version(1, Parser(), AVAILABLE)}
    client = make_client(parser)
    waiting = threading.Thread(
        target=client.post, args=("/translate",), kwargs={"json": {"text": "a", "model": "parser"}}
    )
    waiting.start()
    assert client.get("/healthz").status_code == 200
    gate.set()
    waiting.join()


def test_trees_have_the_words_of_the_line(make_client, tmp_path):
    parser = ServedModel("parser", tmp_path, problem=registry.problem("parse_wsj"))
    parser.versions = {1: Version(1, Parser(), AVAILABLE)}
    client = make_client(parser)
    request = {"text": ["Dogs bark.", ""], "model": "parser"}
    answers = client.post("/translate", json=request).json()["translations"]
    assert answers[0]["text"] == "(S (XX Dogs) (XX bark) (XX .))"
    streamed = client.post("/translate", json=request | {"stream": True}).text.splitlines()
    assert [json.loads(line) for line in streamed] == answers
