"""The page in a browser: drawing, mouse and keys, and no requests."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from t2t_revival.visualization.attention import Attention
from t2t_revival.visualization.attention_page import page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here (Debian: chromium)"),
]
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    "--host-resolver-rules=MAP * ~NOTFOUND",  # the browser itself would ask for its news
    "--virtual-time-budget=2000",  # ms: what waits is done
]
OUTSIDE = "http://example.invalid/"
CALLS = f'<img src="{OUTSIDE}a"><script>fetch("{OUTSIDE}b").catch(() => 0); document.title = "ran";</script>'


class Line(NamedTuple):
    """A drawn line: head, query, memory."""

    head: int
    query: int
    memory: int


class Dom(HTMLParser):
    """State of a page in a browser.

    Attributes:
        tokens: of both sides, "from" and "at", as they are read.
        lines: how strong each is.
        status: below the figure.
        title: of the page.
        result: what a test's script left.
        requests: addresses that the page asked for.
    """

    def __init__(self, text: str, requests: list[str]) -> None:
        super().__init__()
        self.tokens: dict[str, dict[int, str]] = {"from": {}, "at": {}}
        self.lines: dict[Line, float] = {}
        self.requests = requests
        self._texts: dict[str, str] = {}
        self._open: list[tuple[str, dict]] = []
        self.feed(text)
        self.status, self.title, self.result = (self._texts.get(n, "") for n in ("status", "title", "result"))

    def handle_starttag(self, tag, attrs) -> None:
        has = dict(attrs)
        if tag == "line":
            line = Line(*(int(has[f"data-{name}"]) for name in Line._fields))
            self.lines[line] = float(has["stroke-opacity"])
        if tag not in ("meta", "link", "input", "img"):
            self._open.append((tag, has))
        if "token" in has.get("class", "").split():
            self.tokens[has["data-side"]][int(has["data-place"])] = ""

    def handle_endtag(self, tag) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data) -> None:
        for tag, has in self._open:
            if "token" in has.get("class", "").split():
                self.tokens[has["data-side"]][int(has["data-place"])] += data
            name = has.get("id", tag)
            self._texts[name] = self._texts.get(name, "") + data


@pytest.fixture
def browse(tmp_path):
    """Opens a page at a hash: (text, hash) -> `Dom`."""

    def opened(text: str, where: str = "") -> Dom:
        path, log = tmp_path / "page.html", tmp_path / "log.json"
        path.write_text(text, encoding="utf-8")
        command = [str(BROWSER), *FLAGS, f"--user-data-dir={tmp_path / 'user'}", f"--log-net-log={log}"]
        command += ["--dump-dom", path.as_uri() + where]
        done = subprocess.run(command, capture_output=True, check=True, timeout=300)
        return Dom(done.stdout.decode(), requests(log))

    return opened


def requests(log: Path) -> list[str]:
    """Addresses requested by a page, without those of the browser itself."""
    net = json.loads(log.read_text(encoding="utf-8"))
    begun = net["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    jobs = [event["params"] for event in net["events"] if event["type"] == begun and "params" in event]
    return [job["url"] for job in jobs if job.get("initiator") != "not an origin" and "url" in job]


def driven(attention: Attention, script: str) -> str:
    """The page with a script of a test's own, which puts JSON into an element `result`."""
    text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", page(attention, "about"))
    helpers = """
      const token = (side, place) => document.querySelector(`[data-side=${side}][data-place="${place}"]`);
      const drawn = () => [...document.querySelectorAll("line")].map(
        (line) => [line.dataset.head, line.dataset.query, line.dataset.memory].map(Number));
      const key = (name) => document.activeElement.dispatchEvent(
        new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
      const over = (node, type = "pointerover") => node.dispatchEvent(
        new PointerEvent(type, {bubbles: type === "pointerover"}));
      const later = () => new Promise((done) => setTimeout(done, 300));
      const steps = {};
    """
    end = "document.getElementById('result').textContent = JSON.stringify(steps);"
    added = f"<pre id=result></pre><script>(async () => {{ {helpers} {script} {end} }})();</script>"
    return text.replace("</body>", f"{added}</body>")


def strong(weights: np.ndarray) -> dict[tuple[int, int], float]:
    """Weights that are drawn, rounded as on the page."""
    rounded = np.rint(weights * 255)
    return {(q, m): round(rounded[q, m] / 255, 3) for q, m in np.argwhere(rounded >= 5).tolist()}


@pytest.mark.parametrize(
    ("kind", "number", "layer", "heads"),
    [("encoder", 0, 1, [2]), ("decoder", 1, 2, [1, 4]), ("cross", 2, 1, [3])],
)
def test_the_hash_chooses_what_is_drawn(hostile, browse, kind, number, layer, heads) -> None:
    shown = hostile.kinds[number]
    dom = browse(page(hostile, "about"), f"#kind={kind}&layer={layer}&heads={','.join(map(str, heads))}")
    assert list(dom.tokens["from"].values()) == shown.queries
    assert list(dom.tokens["at"].values()) == shown.memory
    expected = {
        Line(head, *places): weight
        for head in heads
        for places, weight in strong(shown.weights[layer - 1, head - 1]).items()
    }
    assert dom.lines == expected
    assert (dom.title, dom.requests) == ("Attention", [])


def test_all_heads_of_the_last_layer_are_drawn_where_nothing_is_chosen(hostile, browse) -> None:
    for where in ("", "#kind=none&layer=9&from=99&heads=1,2,3,4,5,x"):
        dom = browse(page(hostile, "about"), where)
        assert {line.head for line in dom.lines} == {1, 2, 3, 4}
        first = {line[1:]: weight for line, weight in dom.lines.items() if line.head == 1}
        assert first == strong(hostile.kinds[2].weights[-1, 0])  # encoder-decoder
        assert dom.status == ""


def test_a_token_of_the_hash_is_isolated_and_described(hostile, browse) -> None:
    dom = browse(page(hostile, "about"), "#kind=cross&layer=2&heads=2&from=3")
    assert {line.query for line in dom.lines} == {2}
    weights = hostile.kinds[2].weights[1, 1, 2]
    best = int(weights.argmax())
    start = f"{hostile.kinds[2].queries[2]} attends to {hostile.kinds[2].memory[best]} "
    assert dom.status.startswith(start)
    percent = int(re.match(r"\d+", dom.status[len(start) :])[0])
    assert abs(percent - 100 * weights[best]) < 1
    dom = browse(page(hostile, "about"), f"#kind=cross&layer=2&heads=2&at={best + 1}")
    assert {line.memory for line in dom.lines} == {best}
    assert " is attended to by " in dom.status


def test_hand_and_keys(hostile, browse) -> None:
    """All in one page without a security policy, which still sends no request."""
    dom = browse(
        driven(
            hostile,
            """
            steps.all = drawn();
            over(token("at", 2)); steps.pointed = drawn();
            over(document.getElementById("figure"), "pointerleave"); steps.left = drawn();
            token("from", 3).click(); over(token("at", 5));
            over(document.getElementById("figure"), "pointerleave"); steps.clicked = drawn();
            token("from", 3).click(); steps.again = drawn();
            token("from", 0).focus(); steps.focused = drawn();
            key("ArrowDown"); key("ArrowDown"); steps.down = drawn();
            steps.tabs = document.querySelectorAll('#queries [tabindex="0"]').length;
            key("ArrowRight"); steps.right = drawn();
            key("End"); steps.end = drawn();
            key("ArrowDown"); steps.beyond = drawn();
            await later(); steps.hash = location.hash;
            key("Escape"); steps.escaped = drawn();
            document.querySelector("[value=cross]").click(); steps.cross = drawn();
            document.querySelector("#boxes input[value='2']").click(); steps.without2 = drawn();
            document.querySelector("#boxes label[data-head='3']").dispatchEvent(
              new MouseEvent("dblclick", {bubbles: true})); steps.only3 = drawn();
            const layer = document.getElementById("layer");
            layer.value = 1; layer.dispatchEvent(new Event("change", {bubbles: true}));
            steps.layer1 = drawn();
            document.getElementById("none").click(); steps.none = drawn();
            document.getElementById("all").click(); steps.every = drawn();
            location.hash = "#kind=decoder&heads=1"; await later(); steps.moved = drawn();
            steps.checked = [...document.querySelectorAll(":checked")].map((box) => box.value);
            """,
        ),
        "#kind=encoder",
    )
    steps = json.loads(dom.result)
    lines = {name: {Line(*line) for line in found} for name, found in steps.items() if name not in NO_LINES}
    encoder, decoder, cross = hostile.kinds

    def of(attended, layer: int, heads=(1, 2, 3, 4)) -> set[Line]:
        return {Line(head, *at) for head in heads for at in strong(attended.weights[layer - 1, head - 1])}

    whole = of(encoder, 3)
    for name in ("all", "left", "again", "escaped"):
        assert lines[name] == whole, name
    for name, isolated in {
        "pointed": {line for line in whole if line.memory == 2},
        "clicked": {line for line in whole if line.query == 3},
        "focused": {line for line in whole if line.query == 0},
        "down": {line for line in whole if line.query == 2},
        "right": {line for line in whole if line.memory == 2},
        "end": {line for line in whole if line.memory == 10},
        "beyond": {line for line in whole if line.memory == 10},
    }.items():
        assert lines[name] == isolated, name
        assert isolated
    assert steps["tabs"] == 1
    assert steps["hash"] == "#kind=encoder&layer=3&heads=1,2,3,4&at=11"
    assert lines["cross"] == of(cross, 2)  # its last, since it has no third
    assert lines["without2"] == of(cross, 2, (1, 3, 4))
    assert lines["only3"] == of(cross, 2, (3,))
    assert lines["layer1"] == of(cross, 1, (3,))
    assert lines["none"] == set()
    assert lines["every"] == of(cross, 1)
    assert lines["moved"] == of(decoder, 2, (1,))
    assert steps["checked"] == ["decoder", "2", "1"]
    assert dom.requests == []


NO_LINES = ("tabs", "hash", "checked")


@pytest.mark.parametrize("width", [320, 960])
def test_tokens_can_be_read_in_a_narrow_window(hostile, browse, width) -> None:
    script = f"""
      document.body.style.cssText = "width: {width}px; padding: 0";
      const wide = (id) => document.getElementById(id).getBoundingClientRect().width;
      Object.assign(steps, {{queries: wide("queries"), lines: wide("lines"), memory: wide("memory")}});
    """
    widths = json.loads(browse(driven(hostile, script)).result)
    assert min(widths.values()) > 90
    assert sum(widths.values()) <= width


def test_a_request_would_be_seen_and_is_refused_by_the_page(hostile, browse) -> None:
    """The same addition runs in a page without a security policy, and not in this one."""
    dom = browse(f"<!DOCTYPE html><title>control</title>{CALLS}")
    assert (sorted(dom.requests), dom.title) == ([f"{OUTSIDE}a", f"{OUTSIDE}b"], "ran")
    dom = browse(page(hostile, "about").replace("</body>", f"{CALLS}</body>"))
    assert (dom.requests, dom.title) == ([], "Attention")
    assert dom.lines
