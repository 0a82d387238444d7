"""The page's views in a browser: attention, trees, files, about; themes, widths, readers, keys of the API."""

import pytest

from tests.server.page_server import Running, explained, in_a_browser, lit, type_text

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
pytestmark = [pytest.mark.slow, pytest.mark.nightly, in_a_browser]
WIDTHS = (320, 375, 768, 1280, 2560)


def test_the_attention_of_the_sentence(page):
    explained(page, "one two")
    page.click("#open-attention")
    frame = page.frame_locator("#attention-frame")
    playwright.expect(frame.locator("#queries .token")).to_have_text(["QUERY", "<EOS>"])
    frame.locator("#queries .token").first.click()
    playwright.expect(frame.locator("#lines line")).to_have_count(4)
    page.wait_for_timeout(300)
    assert frame.locator("#kinds input:checked").get_attribute("value") == "cross"
    assert frame.locator("header").is_hidden()  # the page around it shows the sentence
    assert frame.locator("#address").is_hidden()
    bounds = frame.locator("footer").bounding_box()
    outer = page.locator("#attention-frame").bounding_box()
    assert bounds["y"] + bounds["height"] <= outer["y"] + outer["height"]  # nothing is cut
    assert outer["y"] + outer["height"] <= 900


def test_a_tag_is_sent(page, server):
    page.select_option("#model", "tagged")
    page.wait_for_selector("#tags:not([hidden])")
    type_text(page, "a")
    assert server.tagged.batches[-1] == ["<2de> a"]
    page.select_option("#tag", "<2fr>")
    type_text(page, "b")
    assert server.tagged.batches[-1] == ["<2fr> b"]


def test_a_file_keeps_the_model_it_began_with(page, server, tmp_path):
    server.capitals.gate.clear()
    (tmp_path / "news.txt").write_text("line\n" * 501)
    page.set_input_files("#file", tmp_path / "news.txt")
    page.wait_for_selector("text=0 of 501 lines")
    server.tagged.batches.clear()
    page.select_option("#model", "tagged")
    server.capitals.gate.set()
    page.wait_for_selector("text=501 of 501 lines, done")
    assert server.tagged.batches == []


def test_a_file_that_cannot_be_read_leaves_the_one_before(page, server, tmp_path):
    server.capitals.gate.clear()
    (tmp_path / "good.txt").write_text("a\n")
    (tmp_path / "empty.txt").write_text("")
    page.set_input_files("#file", tmp_path / "good.txt")
    page.wait_for_selector("text=0 of 1 lines")
    page.set_input_files("#file", tmp_path / "empty.txt")
    page.wait_for_selector("text=empty.txt is empty.")
    server.capitals.gate.set()
    page.wait_for_selector("text=1 of 1 lines, done")


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
    ("content", "fault"),
    [
        (b"", "f.txt is empty."),
        (b"PNG\x00\xc3(", "f.txt is not a text file in UTF-8."),
        (b"a\n" + b"b" * 20_001 + b"\n", "f.txt, line 2 has more than 20,000 characters: split it."),
    ],
)
def test_files_that_are_not_translated(page, tmp_path, content, fault):
    (tmp_path / "f.txt").write_bytes(content)
    page.set_input_files("#file", tmp_path / "f.txt")
    playwright.expect(page.locator("#error")).to_have_text(fault)


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
    for text in ("capitals", "translate_capitals", "1,234", "2,000", "29.50"):
        assert text in facts
    assert page.inner_text("#subtitle") == "capitals · step 2,000 · dev BLEU 29.5"
    assert page.locator("#curve polyline").count() == 2
    caption = "dev loss from 4.50 to 2.50 (grey), dev BLEU from 11.00 to 31.25 (colour)."
    assert page.inner_text("#curve figcaption") == caption
    page.keyboard.press("Escape")
    assert not page.is_visible("#about")


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


def test_all_widths(page):
    explained(page, "one two three " * 12 + "x" * 200)
    page.click("#options-card summary")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for name in ("#source", "#output"):
            assert page.locator(name).bounding_box()["width"] > min(250, 0.3 * width)
        for row in (("h1", "#open-about", "#theme"), ("#output-title", "#shading", "#copy")):
            boxes = [page.locator(one).bounding_box() for one in row]
            middles = [box["y"] + box["height"] / 2 for box in boxes]
            assert max(middles) - min(middles) < 8, (width, row)


def test_the_theme_can_be_chosen(page):
    page.click("#theme")
    page.click("#theme")
    assert page.inner_text("#theme") == "◐ dark"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
