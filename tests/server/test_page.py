"""The page in a browser, what most of its users do: text, words, outputs, files, trees, keys."""

import threading

import pytest

from t2t_revival.addons.server.versions import ServedModel
from t2t_revival.serving.signatures import DEFAULT, WITH_SAMPLING
from tests.server.conftest import CapitalLetters
from tests.server.page_server import Running, explained, in_a_browser, lit, type_text

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.slow, in_a_browser]
HOSTILE = "<img src=x onerror=\"document.title='ran'\"> & \U0001f600 </script> end"


def test_text_is_translated_after_a_pause_and_once(page, server):
    server.capitals.batches.clear()
    page.locator("#source").press_sequentially("a dog runs")
    page.wait_for_selector("text=A DOG RUNS")
    assert server.capitals.batches == [["a dog runs"]]
    assert page.inner_text("#score") == "score \u22120.100"


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


def test_samples_are_drawn_with_their_own_options(page, server):
    page.click("#options-card summary")
    assert page.is_hidden("#sampling_temp")
    page.fill("#beam_size", "17")
    page.select_option("#sampling_method", "random")
    assert page.is_hidden("#beam_size")
    page.fill("#sampling_temp", "0.5")
    page.fill("#n", "2")
    type_text(page, "a dog")
    playwright.expect(page.locator("#nbest button")).to_have_count(2)
    signature, options = server.capitals.called
    assert signature == WITH_SAMPLING
    assert (options["sampling_temp"], options["sampling_keep_top_k"], options["n"]) == (0.5, -1, 2)
    page.click("text=The model's own")
    type_text(page, "a cat")
    assert page.input_value("#sampling_method") == "argmax"
    assert page.is_visible("#beam_size")
    assert server.capitals.called[0] == DEFAULT


def test_another_choice_goes_on_from_there(page, server):
    explained(page, "one \U0001f600 three")
    page.click("#output .word >> nth=2")
    playwright.expect(page.locator("#details")).to_have_text("THREE10 %OTHER\xa060 %NONE\xa0<\xa01\xa0%")
    assert (server.inspector.asked[-1].output, server.inspector.asked[-1].word) == ("ONE \U0001f600 THREE", 2)
    page.click("#details button >> nth=0")
    page.wait_for_selector("#output >> text=ONE \U0001f600 OTHER and more")
    assert server.inspector.asked[-1].prefix == "ONE \U0001f600 OTHER"
    assert page.inner_text("#nbest li >> nth=0").startswith("yours")


def test_a_page_opened_while_models_are_loaded_goes_on_by_itself(open_page):
    gates = {name: threading.Event() for name in ("first", "second")}

    def prepare(model):
        assert gates[model.name].wait(30)
        model.serve(1, CapitalLetters())

    loading = [ServedModel(name, None, prepare=prepare, say=lambda line: None) for name in gates]
    running = Running(models=loading)
    try:
        page = open_page(running.url)
        playwright.expect(page.locator("#loading")).to_have_text("loading 1 of 2")
        page.fill("#source", "a dog")
        page.wait_for_timeout(600)
        assert page.is_hidden("#error")
        gates["first"].set()
        page.wait_for_selector("text=A DOG")
        playwright.expect(page.locator("#loading")).to_have_text("loading 2 of 2")
        page.click("#options-card summary")
        page.fill("#n", "2")
        gates["second"].set()
        playwright.expect(page.locator("#loading")).to_have_text("")
        playwright.expect(page.locator("#model option")).to_have_text(["first", "second"])
        assert (page.input_value("#model"), page.input_value("#n")) == ("first", "2")
    finally:
        for gate in gates.values():
            gate.set()
        running.end()


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


def test_hostile_text_is_text(page):
    explained(page, HOSTILE)
    assert page.inner_text("#output") == HOSTILE.upper()
    assert page.title() == "Translate: capitals"


def test_a_key_is_asked_for(open_page):
    running = Running(api_keys=["secret"])
    try:
        page = open_page(running.url)
        page.wait_for_selector("#key-dialog[open]")
        page.keyboard.press("Escape")
        playwright.expect(page.locator("#error")).to_have_text("The server needs an API key.")
        page.fill("#source", "a")
        page.fill("#key", "ключ")
        page.click("text=Continue")
        assert page.is_visible("#key-dialog")
        page.fill("#key", "wrong")
        page.click("text=Continue")
        playwright.expect(page.locator("#key-error")).to_have_text("This key is not valid.")
        page.fill("#key", "secret")
        page.click("text=Continue")
        type_text(page, "a dog")
        page.reload()
        type_text(page, "again")
    finally:
        running.end()
