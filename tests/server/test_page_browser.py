"""The page in a browser: text, words, options, keys, and no request to anywhere else."""

import threading
import time

import pytest

from t2t_revival.server.service import Limits
from t2t_revival.server.versions import ServedModel
from t2t_revival.serving.signatures import DEFAULT, WITH_SAMPLING
from tests.server.conftest import CapitalLetters
from tests.server.page_server import BROWSER, Running, explained, lit, type_text

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here (Debian: chromium)"),
]


def test_text_is_translated_after_a_pause_and_once(page, server):
    server.capitals.batches.clear()
    page.locator("#source").press_sequentially("a dog runs")
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


def test_a_fault_leaves_no_old_output(page):
    explained(page, "one")
    page.fill("#source", "fault")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#output") == ""
    assert not page.is_visible("#open-attention")


def test_a_late_explanation_does_not_replace_a_newer_choice(page, server):
    page.click("#options-card summary")
    page.fill("#n", "2")
    server.inspector.gate.clear()
    type_text(page, "a dog")
    page.click("#nbest li:nth-child(2) button")
    server.inspector.gate.set()
    page.wait_for_selector("#output .word")
    playwright.expect(page.locator("#output")).to_have_text("?")
    focused = page.evaluate("document.activeElement.innerText")
    assert focused.endswith("?")


def test_escape_in_a_dialog_cancels_nothing(page, server):
    server.capitals.gate.clear()
    page.fill("#source", "two")
    page.wait_for_selector("#result[aria-busy=true]")
    page.click("#open-about")
    page.keyboard.press("Escape")
    server.capitals.gate.set()
    page.wait_for_selector("text=TWO")


def test_a_server_with_a_small_beam(open_page):
    running = Running(limits=Limits(max_beam_size=2))
    try:
        page = open_page(running.url)
        type_text(page, "a dog")
        page.click("#options-card summary")
        assert page.input_value("#beam_size") == "2"
        page.fill("#alpha", "0.65")
        type_text(page, "another")
    finally:
        running.end()


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
    page.wait_for_selector("text=Beam size must be a whole number between 1 and 16: 17.")
    page.fill("#beam_size", "4")
    page.fill("#alpha", "-11")
    page.wait_for_selector("text=Length penalty (alpha) must be a number between -10 and 10: -11.")
    page.fill("#alpha", "0.6")
    page.fill("#extra_length", "1.5")
    page.wait_for_selector("text=Extra length must be a whole number at least 0: 1.5.")
    page.fill("#extra_length", "")
    playwright.expect(page.locator("#error")).to_have_text("Extra length must be a whole number at least 0.")
    assert server.capitals.batches == []
    page.click("text=The model's own")
    playwright.expect(page.locator("#error")).to_be_hidden()
    assert page.input_value("#beam_size") == "4"


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


def test_a_line_that_was_cut_is_named(page, server, monkeypatch):
    answer = server.capitals.predict

    def predict(signature, inputs):
        return {**answer(signature, inputs), "truncated": [len(line) > 5 for line in inputs["inputs"]]}

    monkeypatch.setattr(server.capitals, "predict", predict)
    page.fill("#source", "a dog\na long line")
    page.wait_for_selector("text=Line 2 is longer than the model reads")
    assert "A LONG LINE" in page.inner_text("#output")
    type_text(page, "short")
    assert page.is_hidden("#error")


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
    playwright.expect(page.locator("#details")).to_have_text("THREE10 %OTHER\xa060 %NONE\xa0<\xa01\xa0%")
    assert (server.inspector.asked[-1].output, server.inspector.asked[-1].word) == ("ONE \U0001f600 THREE", 2)
    page.click("#details button >> nth=0")
    page.wait_for_selector("#output >> text=ONE \U0001f600 OTHER and more")
    assert server.inspector.asked[-1].prefix == "ONE \U0001f600 OTHER"
    assert page.inner_text("#nbest li >> nth=0").startswith("yours")


def test_alternatives_are_asked_for_at_a_click_and_are_those_of_the_last_word(page, server):
    server.inspector.asked.clear()
    explained(page, "one two three")
    assert [asked.word for asked in server.inspector.asked] == [None]
    server.inspector.gate.clear()
    page.click("#output .word >> nth=0")
    page.click("#output .word >> nth=1")
    assert page.inner_text("#details").startswith("TWO")
    server.inspector.gate.set()
    playwright.expect(page.locator("#details button")).to_have_count(2)
    page.click("#details button >> nth=0")
    page.wait_for_selector("#output >> text=ONE OTHER and more")


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


def test_each_line_has_its_words(page):
    explained(page, "one two\nunexplained\n\nthree")
    playwright.expect(page.locator("#output p")).to_have_count(4)
    page.wait_for_selector("#output p:nth-child(4) .word")
    assert page.locator("#output p:nth-child(2) .word").count() == 0
    page.click("#output p:nth-child(4) .word")
    playwright.expect(page.locator("#source-words")).to_have_text("three")
    playwright.expect(page.locator("#output p:nth-child(4)")).to_have_class("active")
