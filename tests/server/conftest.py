"""An exported model that needs no weights: it writes in capital letters."""

import re
import string
import threading

import pytest
from starlette.testclient import TestClient
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from t2t_revival import T2TError
from t2t_revival.addons.attention import page as attention_page
from t2t_revival.addons.server.app import create_app
from t2t_revival.addons.server.explanation import OtherWord
from t2t_revival.addons.server.inspection import ExplainAnswer, OutputWord, Place, Score, Training
from t2t_revival.addons.server.translate import Options
from t2t_revival.addons.server.versions import AVAILABLE, END, ServedModel, Version
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.serving.description import Description
from t2t_revival.serving.signatures import (
    DEFAULT,
    DESCRIBE,
    DTYPES,
    NO_OUTPUT,
    WITH_OPTIONS,
    WITH_PREFIXES,
    WITH_SAMPLING,
    WITH_TABLES,
)

USUAL = ["inputs", "alpha", "extra_length", "n"]
SAMPLING = ["sampling_temp", "sampling_keep_top_k", "random_seed"]
NUMBERS = {"float32": 1, "int32": 3, "string": 7}  # of `DataType`


def describe():
    """The description of a model whose vocabulary has nothing but characters."""
    vocabulary = SubwordVocabulary.build_from_generator([string.printable], 100)
    return Description(Vocabularies(vocabulary, vocabulary), 1000, 0.0, aligns=False).to_json()


class CapitalLetters:
    """Returns n outputs for each line, the text in capitals first, and fails for lines that are "fault".

    Attributes:
        batches: the lines of each call that translates.
        calls: signature and options of each call.
        gate: calls wait until it is set.
    """

    where = "capitals"
    is_closed = False
    description = describe()

    def __init__(self, tags=False):
        self.batches, self.calls, self.gate = [], [], threading.Event()
        self.gate.set()
        self.signature_defs = {DEFAULT: self._signature(["inputs"])}
        signatures = {
            WITH_OPTIONS: ["beam_size"],
            WITH_SAMPLING: SAMPLING,
            WITH_TABLES: ["beam_size", "tables"],
            WITH_PREFIXES: ["beam_size", "prefixes"],
        }
        for name, options in signatures.items():
            definition = self._signature([*USUAL, *options, *(["tag"] if tags else [])])
            self.signature_defs[name] = definition
            if tags:
                definition.defaults["tag"].string_val.append(b"")
        self.signature_defs[DESCRIBE] = self._signature(["inputs"])

    @property
    def called(self):
        """Signature and options of the last call."""
        return self.calls[-1]

    def close(self):
        self.is_closed = True

    def predict(self, signature, inputs):
        options = {name: values[0] for name, values in inputs.items() if name != "inputs"}
        self.calls.append((signature, options))
        if signature == DESCRIBE:
            return {"description": [self.description] * len(inputs["inputs"])}
        self.batches.append([*inputs["inputs"]])
        assert self.gate.wait(10)
        if "fault" in inputs["inputs"]:
            raise T2TError("capitals: a fault")
        counts = inputs.get("n", [1] * len(inputs["inputs"]))
        outputs, scores = [], []
        for line, count in zip(inputs["inputs"], counts, strict=True):
            outputs.append(
                [
                    re.sub(r"^<\S+> ", "", line).upper().encode(),
                    *[b"?" * rank for rank in range(1, count)],
                    *[b""] * (max(counts) - count),
                ]
            )
            scores.append([-0.1 * (n + 1) for n in range(count)] + [NO_OUTPUT] * (max(counts) - count))
        return {"outputs": outputs, "scores": scores, "truncated": [False] * len(outputs)}

    @staticmethod
    def _signature(names):
        signature = SignatureDef(method_name="tensorflow/serving/predict")
        for name in names:
            signature.inputs[name].dtype = NUMBERS[DTYPES[name]]
        for name, dtype in (("outputs", "string"), ("scores", "float32")):
            signature.outputs[name].dtype = NUMBERS[dtype]
        return signature


@pytest.fixture
def capitals():
    return CapitalLetters()


class Parser(CapitalLetters):
    """Returns, for a sentence of n words, the model's form of a tree of them all."""

    def predict(self, signature, inputs):
        trees = [f"(S {'XX ' * len(line.split())})S".encode() for line in inputs["inputs"]]
        scores, truncated = [[-0.5] for _ in trees], [False] * len(trees)
        return {"outputs": [[tree] for tree in trees], "scores": scores, "truncated": truncated}


class CapitalsInspector:
    """Explains capital letters: each word is attended to by its own, and the third is unlikely.

    Attributes:
        asked: the requests.
        gate: explanations wait until it is set.
    """

    explains = explains_unasked = True
    training = Training(
        problem="translate_capitals",
        hparams_set="tiny",
        step=2000,
        parameters=1234,
        score=Score(name="BLEU", value=29.5),
        metric="BLEU",
        curves={"loss": [(1e6, 4.5), (2e6, 2.5)], "score": [(1e6, 11.0), (2e6, 31.25)]},
    )

    def __init__(self, attention=None, tags=()):
        self.asked, self._attention, self.tags = [], attention, tags
        self.gate = threading.Event()
        self.gate.set()

    @property
    def options(self):
        return Options()

    def explain(self, asked):
        self.asked.append(asked)
        assert self.gate.wait(10)
        if "unexplained" in asked.text:
            raise T2TError("nothing to explain")
        output = asked.output or f"{asked.prefix} and more"
        source, words = (
            [match.span() for match in re.finditer(r"\S+", text)] for text in (asked.text, output)
        )
        explained = [
            OutputWord(
                start=start,
                end=end,
                probability=0.1 if place == 2 else 0.99,
                alternatives=[
                    OtherWord(text=other, prefix=f"{output[:start]}{other}", probability=p)
                    for other, p in (("OTHER", 0.6), ("NONE", 0.001))
                    if place == asked.word
                ],
                attention=[0.8 if place == other else 0.1 for other in range(len(source))],
            )
            for place, (start, end) in enumerate(words)
        ]
        places = [Place(start=start, end=end) for start, end in source]
        return ExplainAnswer(text=asked.text, words=places, output=output, output_words=explained)

    def attention_page(self, asked):
        self.asked.append(asked)
        return attention_page.page(self._attention, "about")


@pytest.fixture(scope="module")
def server():
    from tests.server.page_server import Running

    running = Running()
    yield running
    running.end()


@pytest.fixture
def open_page(chromium, server):
    """Opens the page in a new browser profile; it must have asked no one else, and no script have failed."""
    server.capitals.gate.set()
    server.inspector.gate.set()
    contexts, faults, addresses = [], [], []

    def opened(url=server.url, width=1280, **settings):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(8000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: addresses.append((request.url, url)))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    expected = ("status of 400", "status of 401", "ERR_CONNECTION_REFUSED")
    assert not [fault for fault in faults if not any(known in fault for known in expected)]
    own = ("data:", "blob:", "about:")
    assert not [asked for asked, url in addresses if not asked.startswith((url, *own))]


@pytest.fixture
def page(open_page):
    return open_page()


@pytest.fixture
def served(capitals, tmp_path):
    """A model with the versions 3, which was refused, and 2, which answers and is the stable one."""
    model = ServedModel("capitals", tmp_path, labels={"stable": 2, "old": 1})
    model.versions = {3: Version(3, None, END, "damaged"), 2: Version(2, capitals, AVAILABLE)}
    return model


@pytest.fixture
def make_client(served, tmp_path):
    """Makes clients of servers with one model, or with several."""
    clients = []

    def make(*more, limits=None, batch_limits=None, **settings):
        models = {model.name: model for model in (served, *more)}
        app = create_app(models, limits, batch_limits, **settings)
        clients.append(TestClient(app, raise_server_exceptions=False).__enter__())
        return clients[-1]

    yield make
    for client in clients:
        client.__exit__()


@pytest.fixture
def client(make_client):
    return make_client()


def error_of(response, status):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()["error"]
