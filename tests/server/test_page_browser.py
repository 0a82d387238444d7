"""The page in a browser: typing, clicking, keys, files, and no request to anywhere else."""

import shutil
import socket
import threading
import time

import numpy as np
import pytest
import uvicorn

from t2t_revival import registry
from t2t_revival.server.app import create_app
from t2t_revival.server.versions import AVAILABLE, ServedModel, Version
from t2t_revival.visualization.attention import CROSS, Attention, AttentionWeights
from tests.server.conftest import CapitalLetters, CapitalsInspector, Parser

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here (Debian: chromium)"),
]
HOSTILE = "<img src=x onerror=\"document.title='ran'\"> & \U0001f600 </script> end"
WIDTHS = (320, 768, 1280, 2560)


def served(name, model, problem=None, inspector=None):
    found = ServedModel(name, None, problem=problem, inspector=inspector)
    found.versions = {5: Version(5, model, AVAILABLE)}

    async def watch(_):
        pass

    found.watch = watch
    return found


class Running:
    """A server in a thread: capital letters, with tags, and a parser.

    Attributes:
        url: its address.
        capitals: the model of capital letters.
        inspector: explains it.
    """

    def __init__(self, **settings):
        weights = np.full((1, 2, 2, 2), 0.5, "float32")
        cross = AttentionWeights(CROSS, ["QUERY", "<EOS>"], ["memory", "<EOS>"], (1,), (1, 2), weights)
        self.capitals = CapitalLetters()
        self.inspector = CapitalsInspector(Attention("memory", "QUERY", (cross,)))
        parser = served("parser", Parser(), registry.problem("parse_wsj"))
        tagged = served("tagged", CapitalLetters(tags=True))
        models = [served("capitals", self.capitals, inspector=self.inspector), parser, tagged]
        app = create_app({model.name: model for model in models}, **settings)
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://localhost:{listener.getsockname()[1]}/"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]})
        self._thread.start()

    def end(self):
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture(scope="module")
def server():
    running = Running()
    yield running
    running.end()


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium, server):
    """Opens the page in a new browser profile; it must have asked no one else, and no script have failed."""
    server.capitals.gate.set()
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


def test_text_is_translated_after_a_pause_and_once(page, server):
    server.capitals.batches.clear()
    page.locator("#source").press_sequentially("a dog runs", delay=20)
    page.wait_for_selector("text=A DOG RUNS")
    assert server.capitals.batches == [["a dog runs"]]
    assert page.inner_text("#score") == "score \u22120.100"


def test_typing_on_cancels_what_is_translated(page, server):
    server.capitals.batches.clear()
    server.capitals.gate.clear()
    page.fill("#source", "first")
    page.wait_for_selector("#result[aria-busy=true]")
    page.fill("#source", "second")
    time.sleep(0.6)
    server.capitals.gate.set()
    page.wait_for_selector("text=SECOND")
    assert "FIRST" not in page.inner_text("#output")


def test_an_empty_text_has_no_output(page):
    type_text(page, "a")
    page.click("#clear")
    playwright.expect(page.locator("#output p")).to_have_count(0)
    assert page.is_disabled("#copy")


def test_a_fault_is_shown_and_goes_away(page):
    page.fill("#source", "fault")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#error") == "capitals: a fault"
    type_text(page, "well")
    assert not page.is_visible("#error")


def test_outputs_can_be_chosen(page):
    page.click("#options-card summary")
    page.fill("#n", "3")
    type_text(page, "a dog")
    buttons = page.locator("#nbest button")
    playwright.expect(buttons).to_have_count(3)
    buttons.nth(1).click()
    playwright.expect(page.locator("#output")).to_have_text("?")
    assert page.inner_text("#score") == "score \u22120.200"
    assert page.get_attribute("#nbest li:nth-child(2) button", "aria-pressed") == "true"


def test_options_out_of_bounds_are_not_sent(page, server):
    type_text(page, "a dog")
    page.click("#options-card summary")
    server.capitals.batches.clear()
    page.fill("#beam_size", "17")
    page.wait_for_selector("text=An option is out of bounds.")
    assert server.capitals.batches == []
    page.click("text=The model's own")
    playwright.expect(page.locator("#error")).to_be_hidden()
    assert page.input_value("#beam_size") == "4"


def test_unlikely_words_are_shaded(page):
    explained(page, "one two three")
    tints = page.eval_on_selector_all(
        "#output .word", "nodes => nodes.map(node => node.style.getPropertyValue('--unsure'))"
    )
    assert tints == ["0%", "0%", "80%"]
    assert page.get_attribute("#output .word >> nth=2", "aria-label") == "THREE, 10 % likely"
    page.uncheck("#shade")
    assert "shaded" not in page.get_attribute("#output", "class")
    page.reload()
    assert not page.is_checked("#shade")


def test_words_light_up_with_those_they_are_linked_with(page):
    explained(page, "one two three")
    page.hover("#output .word >> nth=1")
    assert lit(page, "#source-words") == ["two"]
    page.hover("#source-words .word >> nth=2")
    assert lit(page, "#output") == ["THREE"]
    page.hover("h1")
    assert lit(page, "body") == []


def test_another_choice_goes_on_from_there(page, server):
    explained(page, "one \U0001f600 three")
    page.click("#output .word >> nth=2")
    page.click("#details button >> nth=0")
    page.wait_for_selector("#output >> text=ONE \U0001f600 OTHER and more")
    assert server.inspector.asked[-1].prefix == "ONE \U0001f600 OTHER"
    assert page.inner_text("#nbest li >> nth=0").startswith("yours")


def test_keys_move_from_word_to_word(page):
    explained(page, "one two three")
    page.focus("#output .word")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert lit(page, "#source-words") == ["three"]
    page.keyboard.press("Enter")
    assert page.inner_text("#details b") == "THREE"
    page.keyboard.press("ArrowLeft")
    assert lit(page, "#source-words") == ["two"]
    page.fill("#source", "at once")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=AT ONCE", timeout=3000)


def test_each_line_has_its_words(page):
    explained(page, "one two\nunexplained\n\nthree")
    playwright.expect(page.locator("#output p")).to_have_count(4)
    page.wait_for_selector("#output p:nth-child(4) .word")
    assert page.locator("#output p:nth-child(2) .word").count() == 0
    page.click("#output p:nth-child(4) .word")
    playwright.expect(page.locator("#source-words")).to_have_text("three")
    playwright.expect(page.locator("#output p:nth-child(4)")).to_have_class("active")


def test_the_attention_of_the_sentence(page):
    explained(page, "one two")
    page.click("#open-attention")
    frame = page.frame_locator("#attention-frame")
    playwright.expect(frame.locator("#queries .token")).to_have_text(["QUERY", "<EOS>"])
    frame.locator("#queries .token").first.click()
    playwright.expect(frame.locator("#lines line")).to_have_count(4)
    page.wait_for_timeout(300)


def test_a_tree_is_drawn(open_page):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.select_option("#model", "parser")
    page.fill("#source", "dogs bark loudly")
    page.wait_for_selector("#tree svg")
    assert page.inner_text("h1") == "Parse"
    texts = page.eval_on_selector_all("#tree text", "nodes => nodes.map(node => node.textContent)")
    assert texts == ["dogs", "bark", "loudly", "S"]
    assert page.locator("#tree path").count() == 3
    width = page.eval_on_selector("#tree svg", "node => node.getBoundingClientRect().width")
    page.click("#larger")
    larger = page.eval_on_selector("#tree svg", "node => node.getBoundingClientRect().width")
    assert larger == pytest.approx(1.25 * width, rel=0.01)
    page.click("#copy-tree")
    page.wait_for_selector("text=Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "(S (XX dogs) (XX bark) (XX loudly))"


def test_a_tag_is_sent(page):
    page.select_option("#model", "tagged")
    page.wait_for_selector("#tags:not([hidden])")
    type_text(page, "a")


def test_a_file_comes_back_translated(page, tmp_path):
    lines = [f"line {number}" for number in range(1100)]
    (tmp_path / "news.txt").write_text("\r\n".join(lines) + "\r\n")
    page.set_input_files("#file", tmp_path / "news.txt")
    page.wait_for_selector("#save:not([hidden])", timeout=60_000)
    assert page.inner_text("#file-state") == "1,100 of 1,100 lines, done"
    with page.expect_download() as saved:
        page.click("#save")
    assert saved.value.suggested_filename == "news.output.txt"
    assert saved.value.path().read_text() == "".join(f"LINE {number}\n" for number in range(1100))


def test_a_dropped_file_can_be_cancelled(page, server):
    server.capitals.gate.clear()
    drop = """() => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(["a\\nb\\n"], "two.txt", {type: "text/plain"}));
      const how = {dataTransfer, bubbles: true, cancelable: true};
      document.body.dispatchEvent(new DragEvent("dragover", how));
      const seen = !document.getElementById("drop").hidden;
      document.body.dispatchEvent(new DragEvent("drop", how));
      return seen;
    }"""
    assert page.evaluate(drop)
    page.wait_for_selector("#file-card:not([hidden])")
    page.click("#cancel")
    page.wait_for_selector("text=0 of 2 lines, cancelled")
    server.capitals.gate.set()
    assert not page.is_visible("#save")


@pytest.mark.parametrize(
    ("content", "fault"), [(b"", "empty"), (b"PNG\x00\xc3(", "not a text file in UTF-8")]
)
def test_files_without_text(page, tmp_path, content, fault):
    (tmp_path / "f.txt").write_bytes(content)
    page.set_input_files("#file", tmp_path / "f.txt")
    playwright.expect(page.locator("#error")).to_have_text(f"f.txt is {fault}.")


def test_a_server_that_is_gone(open_page):
    running = Running()
    page = open_page(running.url)
    type_text(page, "a dog")
    running.end()
    page.fill("#source", "another")
    playwright.expect(page.locator("#error")).to_have_text("The server does not answer: is it still running?")


def test_recent_texts_stay_in_the_browser(page):
    type_text(page, "one")
    type_text(page, "two")
    page.reload()
    page.click("#recent-card summary")
    playwright.expect(page.locator("#recent button")).to_have_text(["two", "one"])
    page.click("#recent button >> nth=1")
    page.wait_for_selector("text=ONE")
    page.click("#forget")
    playwright.expect(page.locator("#recent-card")).to_be_hidden()


def test_about_the_model(page):
    page.click("#open-about")
    facts = page.inner_text("#facts")
    for text in ("capitals", "translate_capitals", "1,234", "2,000", "31.25 at step 1,500"):
        assert text in facts
    assert page.locator("#curve polyline").count() == 2
    caption = "dev loss from 4.50 to 2.50 (grey), dev BLEU from 11.00 to 31.25 (colour)."
    assert page.inner_text("#curve figcaption") == caption
    page.keyboard.press("Escape")
    assert not page.is_visible("#about")


def test_hostile_text_is_text(page):
    explained(page, HOSTILE)
    assert page.inner_text("#output") == HOSTILE.upper()
    assert page.title() == "Translate: capitals"


def test_text_from_right_to_left(page):
    explained(page, "שלום עולם טוב")
    assert page.eval_on_selector("#output p", "node => getComputedStyle(node).direction") == "rtl"
    page.focus("#output .word")
    page.keyboard.press("ArrowLeft")  # the next word
    assert lit(page, "#source-words") == ["עולם"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wrong_for_readers_and_low_contrast_is_nowhere(open_page, scheme):
    page = open_page(color_scheme=scheme)
    page.click("#options-card summary")
    page.fill("#n", "2")
    explained(page, "one two three")
    page.click("#output .word >> nth=2")
    page.click("#recent-card summary")
    for opened in ("", "#open-about", "#open-attention"):
        if opened:
            page.click(opened)
            page.wait_for_timeout(300)
        found = axe.Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        page.keyboard.press("Escape")


@pytest.mark.parametrize("width", WIDTHS)
def test_all_widths(open_page, width):
    page = open_page(width=width)
    explained(page, "one two three " * 12 + "x" * 200)
    page.click("#options-card summary")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("#source", "#output"):
        assert page.locator(name).bounding_box()["width"] > min(250, 0.3 * width)


def test_the_theme_can_be_chosen(page):
    page.click("#theme")
    page.click("#theme")
    assert page.inner_text("#theme") == "◐ dark"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


def test_a_key_is_asked_for(open_page):
    running = Running(api_keys=["secret"])
    try:
        page = open_page(running.url)
        page.fill("#key", "wrong")
        page.click("text=Continue")
        page.wait_for_selector("#key-dialog[open]")
        page.fill("#key", "secret")
        page.click("text=Continue")
        type_text(page, "a dog")
        page.reload()
        type_text(page, "again")
    finally:
        running.end()
