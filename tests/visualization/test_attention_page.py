"""Attention as a page, which holds the computed weights and escapes tokens, and as a picture."""

import base64
import hashlib
import io
import json
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from t2t_revival.addons.attention import picture as attention_picture
from t2t_revival.addons.attention.attention import COLOURS, CROSS, DECODER, Attention, AttentionWeights
from t2t_revival.addons.attention.page import page


class Elements(HTMLParser):
    """Elements of a page: name, attributes and first text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.open = False
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, dict(attrs), ""))
        self.open = True

    def handle_endtag(self, tag) -> None:
        self.open = False

    def handle_data(self, data) -> None:
        if self.open:
            tag, attributes, text = self.found[-1]
            self.found[-1] = tag, attributes, text + data

    def texts(self, tag: str, **attributes: str) -> list[str]:
        return [text for name, has, text in self.found if name == tag and attributes.items() <= has.items()]


def data_of(text: str) -> dict:
    (data,) = Elements(text).texts("script", id="data")
    return json.loads(data)


def weights_of(kind: dict) -> np.ndarray:
    shape = [len(kind[name]) for name in ("layers", "heads", "queries", "memory")]
    return np.frombuffer(base64.b64decode(kind["weights"]), np.uint8).reshape(shape) / 255


def test_the_data_are_the_attention(hostile) -> None:
    data = data_of(page(hostile, "about"))
    assert (data["source"], data["target"]) == (hostile.source, hostile.target)
    assert [kind["name"] for kind in data["kinds"]] == ["encoder", "decoder", "cross"]
    for kind, attended in zip(data["kinds"], hostile.kinds, strict=True):
        assert (kind["queries"], kind["memory"]) == (attended.queries, attended.memory)
        assert (tuple(kind["layers"]), tuple(kind["heads"])) == (attended.layers, attended.heads)
        np.testing.assert_allclose(weights_of(kind), attended.weights, atol=0.5 / 255 + 1e-6)
    decoder = weights_of(data["kinds"][1])
    assert (decoder[..., np.triu(np.ones((4, 4), bool), 1)] == 0).all()


def test_what_may_run_or_be_loaded(hostile) -> None:
    """The security policy allows one script and one style only."""
    elements = Elements(page(hostile, "about"))
    (policy,) = (has["content"] for tag, has, _ in elements.found if "http-equiv" in has)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == "'none'"
    scripts = [text for tag, has, text in elements.found if tag == "script" and has.get("id") != "data"]
    for kind, texts in (("script-src", scripts), ("style-src", elements.texts("style"))):
        (text,) = texts
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules.pop(kind) == f"'sha256-{digest}'"
    assert rules == {"img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}


def test_hostile_tokens_leave_the_page_as_it_is(hostile) -> None:
    def skeleton(attention: Attention) -> list:
        return [(tag, has) for tag, has, _ in Elements(page(attention, "about")).found]

    plain = AttentionWeights("encoder", ["a"], ["a"], (1,), (1,), np.ones((1, 1, 1, 1), "float32"))
    assert skeleton(hostile) == skeleton(Attention("a", "b", (plain,)))


def test_the_models_name_is_escaped(hostile) -> None:
    elements = Elements(page(hostile, "<b>$script</b> & more"))
    assert elements.texts("p", id="about") == ["<b>$script</b> & more"]
    assert not elements.texts("b")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_any_text_comes_back(text: str) -> None:
    one = AttentionWeights("cross", [text], [text], (1,), (1,), np.ones((1, 1, 1, 1), "float32"))
    data = data_of(page(Attention(text, text, (one,)), "about"))
    assert data["source"] == data["target"] == text
    assert data["kinds"][0]["queries"] == data["kinds"][0]["memory"] == [text]


@pytest.fixture
def figures(monkeypatch) -> list[Figure]:
    """Figures that are saved."""
    written = []
    save = Figure.savefig

    def savefig(self, *arguments, **options) -> None:
        written.append(self)
        save(self, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return written


def size(content: bytes) -> tuple[int, int]:
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


def draw(attention: Attention) -> bytes:
    file = io.BytesIO()
    attention_picture.draw(attention, file)
    return file.getvalue()


def test_tokens_stand_above_and_below(hostile, figures) -> None:
    draw(hostile.select(head=2, kind=CROSS))
    (axes,) = figures[0].axes
    *tokens, title = axes.texts
    assert title.get_text() == "encoder-decoder attention, layer 2, head 2"
    above = [text for text in tokens if text.get_position()[1] > 1]
    below = [text for text in tokens if text.get_position()[1] < 0]
    shown = hostile.kinds[2]
    assert [text.get_text() for text in above] == shown.queries
    assert [text.get_text() for text in below] == [label.replace("\u2581", "·") for label in shown.memory]
    assert {text.get_rotation() for text in tokens} == {90}
    assert not any(text.get_parse_math() for text in tokens)


def test_lines_are_as_strong_as_the_weights(hostile, figures) -> None:
    draw(hostile.select(head=3, kind=DECODER))
    (axes,) = figures[0].axes
    (lines,) = axes.collections
    weights = hostile.kinds[1].weights[-1, 2]
    drawn = np.zeros_like(weights)
    for (above, below), colour in zip(lines.get_segments(), lines.get_colors(), strict=True):
        assert (above[1], below[1]) == (1, 0)
        drawn[int(above[0]), int(below[0])] = colour[3]
        assert "#" + bytes((colour[:3] * 255).round().astype(int).tolist()).hex() == COLOURS[2]
    np.testing.assert_allclose(drawn, np.where(weights < attention_picture.MIN_WEIGHT, 0, weights), atol=1e-6)


def test_a_panel_for_each_kind_and_head(hostile, figures) -> None:
    width, height = size(draw(hostile))
    assert len(figures[0].axes) == 3 * 4
    titles = [axes.texts[-1].get_text() for axes in figures[0].axes]
    assert titles[0] == "encoder self-attention, layer 3, head 1"  # the last layer
    assert titles[-1] == "encoder-decoder attention, layer 2, head 4"
    narrow = size(draw(hostile.select(head=1)))
    assert narrow[0] == width
    assert narrow[1] < height / 3


@pytest.mark.filterwarnings("error")
def test_a_character_that_no_font_has_is_no_warning() -> None:
    one = AttentionWeights("cross", ["\U0010fffd"], ["日本"], (1,), (1,), np.ones((1, 1, 1, 1), "float32"))
    assert size(draw(Attention("", "", (one,))))[0] > 0


def test_a_large_picture_has_fewer_points(monkeypatch, hostile) -> None:
    monkeypatch.setattr(attention_picture, "MAX_PIXELS", 500)
    assert 495 <= max(size(draw(hostile))) <= 500
