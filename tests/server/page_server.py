"""A server without weights for tests of its page, and what they do on it."""

import shutil
import socket
import threading

import numpy as np
import pytest
import uvicorn

from t2t_revival import registry
from t2t_revival.addons.attention.attention import CROSS, Attention, AttentionWeights
from t2t_revival.addons.server.app import create_app
from t2t_revival.addons.server.versions import AVAILABLE, ServedModel, Version
from tests.server.conftest import CapitalLetters, CapitalsInspector, Parser

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here (Debian: chromium)")


def served(name, model, problem=None, inspector=None):
    found = ServedModel(name, None, problem=problem, inspector=inspector)
    found.versions = {5: Version(5, model, AVAILABLE)}
    return found


class Running:
    """A server in a thread: capital letters, with tags, and a parser, or other models.

    Attributes:
        url: its address.
        capitals: the model of capital letters.
        inspector: explains it.
        tagged: another model, which takes tags.
    """

    def __init__(self, models=None, **settings):
        weights = np.full((1, 2, 2, 2), 0.5, "float32")
        cross = AttentionWeights(CROSS, ["QUERY", "<EOS>"], ["memory", "<EOS>"], (1,), (1, 2), weights)
        self.capitals = CapitalLetters()
        self.inspector = CapitalsInspector(Attention("memory", "QUERY", (cross,)))
        parser = served("parser", Parser(), registry.problem("parse_wsj"))
        self.tagged = CapitalLetters(tags=True)
        tagged = served("tagged", self.tagged, inspector=CapitalsInspector(tags=["<2de>", "<2fr>"]))
        models = models or [served("capitals", self.capitals, inspector=self.inspector), parser, tagged]
        app = create_app({model.name: model for model in models}, **settings)
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://localhost:{listener.getsockname()[1]}/"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]})
        self._thread.start()

    def end(self):
        self._server.should_exit = True
        self._thread.join()


def type_text(page, text):
    page.fill("#source", text)
    expected = text.upper().split("\n")
    page.wait_for_function(
        "text => document.getElementById('output').innerText.startsWith(text)", arg=expected[0]
    )


def explained(page, text):
    type_text(page, text)
    page.wait_for_selector("#output .word")


def lit(page, panel):
    return page.eval_on_selector_all(f"{panel} .word.lit", "nodes => nodes.map(node => node.textContent)")
