"""The page in a browser: drawing, mouse and keys, and no requests."""

import re
import shutil

import numpy as np
import pytest

from t2t_revival.addons.attention.page import page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here (Debian: chromium)"),
]
OUTSIDE = "http://example.invalid/"
CALLS = f'<img src="{OUTSIDE}a"><script>fetch("{OUTSIDE}b").catch(() => 0); document.title = "ran";</script>'


@pytest.fixture
def browse(chromium, tmp_path):
    """Opens a page at a hash: (text, hash) -> the page and the addresses that it asks for."""
    contexts = []

    def opened(text, where="", **settings):
        path, requests = tmp_path / "page.html", []
        path.write_text(text, encoding="utf-8")
        contexts.append(chromium.new_context(**settings))
        shown = contexts[-1].new_page()
        shown.on("request", lambda request: requests.append(request))
        shown.goto(path.as_uri() + where, wait_until="networkidle")
        sent = (request.url for request in requests if request.failure != "csp")
        return shown, [url for url in sent if not url.startswith(("file:", "data:"))]

    yield opened
    for context in contexts:
        context.close()


def drawn(shown) -> dict[tuple[int, int, int], float]:
    """How strong each line is: head, query, memory."""
    lines = shown.eval_on_selector_all(
        "line",
        """lines => lines.map((line) => [line.dataset.head, line.dataset.query, line.dataset.memory,
                                         line.getAttribute("stroke-opacity")])""",
    )
    return {(int(head), int(query), int(memory)): float(weight) for head, query, memory, weight in lines}


def strong(attended, layer: int, heads=(1, 2, 3, 4)) -> dict[tuple[int, int, int], float]:
    """The weights that are drawn, rounded as on the page."""
    rounded = np.rint(attended.weights[layer - 1] * 255)
    return {
        (head, query, memory): round(rounded[head - 1, query, memory] / 255, 3)
        for head in heads
        for query, memory in np.argwhere(rounded[head - 1] >= 5).tolist()
    }


@pytest.mark.parametrize(
    ("kind", "number", "layer", "heads"),
    [("encoder", 0, 1, [2]), ("decoder", 1, 2, [1, 4]), ("cross", 2, 1, [3])],
)
def test_the_hash_chooses_what_is_drawn(hostile, browse, kind, number, layer, heads) -> None:
    where = f"#kind={kind}&layer={layer}&heads={','.join(map(str, heads))}"
    shown, requests = browse(page(hostile, "about"), where)
    for side, tokens in (("from", hostile.kinds[number].queries), ("at", hostile.kinds[number].memory)):
        assert shown.locator(f"[data-side={side}] bdi").all_text_contents() == tokens
    assert drawn(shown) == strong(hostile.kinds[number], layer, heads)
    assert (shown.title(), requests) == ("Attention", [])


def test_all_heads_of_the_last_layer_are_drawn_where_nothing_is_chosen(hostile, browse) -> None:
    for where in ("", "#kind=none&layer=9&from=99&heads=1,2,3,4,5,x"):
        shown, _ = browse(page(hostile, "about"), where)
        assert drawn(shown) == strong(hostile.kinds[2], 2)  # encoder-decoder
        assert shown.text_content("#status") == ""


def test_a_token_of_the_hash_is_isolated_and_described(hostile, browse) -> None:
    shown, _ = browse(page(hostile, "about"), "#kind=cross&layer=2&heads=2&from=3")
    assert {query for _, query, _ in drawn(shown)} == {2}
    weights = hostile.kinds[2].weights[1, 1, 2]
    best = int(weights.argmax())
    start = f"{hostile.kinds[2].queries[2]} attends to {hostile.kinds[2].memory[best]} "
    status = shown.text_content("#status")
    assert status.startswith(start)
    assert abs(int(re.match(r"\d+", status[len(start) :])[0]) - 100 * weights[best]) < 1
    shown, _ = browse(page(hostile, "about"), f"#kind=cross&layer=2&heads=2&at={best + 1}")
    assert {memory for _, _, memory in drawn(shown)} == {best}
    assert " is attended to by " in shown.text_content("#status")


def test_the_mouse_isolates_a_token(hostile, browse) -> None:
    shown, _ = browse(page(hostile, "about"), "#kind=encoder")
    whole = drawn(shown)
    assert whole == strong(hostile.kinds[0], 3)
    shown.hover("[data-side=at][data-place='2']")
    assert drawn(shown) == {line: weight for line, weight in whole.items() if line[2] == 2}
    shown.mouse.move(0, 0)
    assert drawn(shown) == whole
    for expected in ({line: weight for line, weight in whole.items() if line[1] == 3}, whole):
        shown.click("[data-side=from][data-place='3']")  # and again, which lets it go
        shown.hover("[data-side=at][data-place='5']")
        shown.mouse.move(0, 0)
        assert drawn(shown) == expected != {}


def test_keys_move_from_token_to_token(hostile, browse) -> None:
    shown, _ = browse(page(hostile, "about"), "#kind=encoder")
    whole = drawn(shown)
    shown.focus("[data-side=from][data-place='0']")
    for keys, side, place in (
        ([], 1, 0),
        (["ArrowDown", "ArrowDown"], 1, 2),
        (["ArrowRight"], 2, 2),
        (["End"], 2, 10),
        (["ArrowDown"], 2, 10),  # there is none below
    ):
        for key in keys:
            shown.keyboard.press(key)
        assert drawn(shown) == {line: weight for line, weight in whole.items() if line[side] == place} != {}
    assert shown.locator('#queries [tabindex="0"]').count() == 1
    shown.wait_for_timeout(300)
    assert shown.url.endswith("#kind=encoder&layer=3&heads=1,2,3,4&at=11")
    shown.keyboard.press("Escape")
    assert drawn(shown) == whole


def test_kinds_layers_and_heads_are_chosen(hostile, browse) -> None:
    shown, requests = browse(page(hostile, "about"), "#kind=encoder")
    _, decoder, cross = hostile.kinds
    shown.check("[value=cross]")
    assert drawn(shown) == strong(cross, 2)  # its last, since it has no third
    shown.uncheck("#boxes input[value='2']")
    assert drawn(shown) == strong(cross, 2, (1, 3, 4))
    shown.dblclick("#boxes label[data-head='3']")
    assert drawn(shown) == strong(cross, 2, (3,))
    shown.select_option("#layer", "1")
    assert drawn(shown) == strong(cross, 1, (3,))
    shown.click("#none")
    assert drawn(shown) == {}
    shown.click("#all")
    assert drawn(shown) == strong(cross, 1)
    shown.evaluate("location.hash = '#kind=decoder&heads=1'")
    shown.wait_for_timeout(300)
    assert drawn(shown) == strong(decoder, 2, (1,))
    checked = shown.eval_on_selector_all(":checked", "boxes => boxes.map((box) => box.value)")
    assert (checked, requests) == (["decoder", "2", "1"], [])


@pytest.mark.parametrize("width", [320, 960])
def test_tokens_can_be_read_in_a_narrow_window(hostile, browse, width) -> None:
    shown, _ = browse(page(hostile, "about"), viewport={"width": width, "height": 800})
    widths = [shown.locator(f"#{name}").bounding_box()["width"] for name in ("queries", "lines", "memory")]
    assert min(widths) > 75
    assert sum(widths) <= width


def test_a_request_would_be_seen_and_is_refused_by_the_page(hostile, browse) -> None:
    """The same addition runs in a page without a security policy, and not in this one."""
    shown, requests = browse(f"<!DOCTYPE html><title>control</title>{CALLS}")
    assert (sorted(requests), shown.title()) == ([f"{OUTSIDE}a", f"{OUTSIDE}b"], "ran")
    shown, requests = browse(page(hostile, "about").replace("</body>", f"{CALLS}</body>"))
    assert (requests, shown.title()) == ([], "Attention")
    assert drawn(shown)
