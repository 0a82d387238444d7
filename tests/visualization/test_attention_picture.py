"""Content of the PNG for any tokens."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure

from t2t_revival.visualization import attention_picture
from t2t_revival.visualization.attention import COLOURS, CROSS, DECODER, Attention, AttentionWeights


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
