"""The page in a browser: text, words, options, keys, and no request to anywhere else."""

import time

import pytest

from t2t_revival.addons.server.requests import Limits
from tests.server.page_server import Running, explained, in_a_browser, lit, type_text

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.slow, pytest.mark.nightly, in_a_browser]


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


def test_each_line_has_its_words(page):
    explained(page, "one two\nunexplained\n\nthree")
    playwright.expect(page.locator("#output p")).to_have_count(4)
    page.wait_for_selector("#output p:nth-child(4) .word")
    assert page.locator("#output p:nth-child(2) .word").count() == 0
    page.click("#output p:nth-child(4) .word")
    playwright.expect(page.locator("#source-words")).to_have_text("three")
    playwright.expect(page.locator("#output p:nth-child(4)")).to_have_class("active")
