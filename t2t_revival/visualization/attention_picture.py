"""Attention as a picture, in the manner of figures 3 to 5 of the paper."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from t2t_revival.data.vocabulary import SPACE_MARK
from t2t_revival.visualization.attention import COLOURS, CROSS, DECODER, ENCODER, Attended, Attention

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {ENCODER: "encoder", DECODER: "decoder", CROSS: "decoder over encoder"}
CAPTION = "Tokens above look at tokens below: the stronger the line, the more."
FAMILY = "DejaVu Sans"  # comes with matplotlib
FONT_SIZE = 11  # points
PITCH, LINES, CHARACTER, TITLE, MARGIN = 0.3, 1.7, 0.105, 0.35, 0.25  # inches
SPACE = str.maketrans(SPACE_MARK, "·")  # a mark as wide as a letter would look like a line
LEAST = 0.02  # weights below it are not drawn
DPI, MOST_PIXELS = 150, 8_000


def draw(attention: Attention, file: BinaryIO) -> None:
    """Draws the last layer of each kind: a column for each kind, a row for each head, as PNG.

    The tokens above look at those below.
    """
    from matplotlib.figure import Figure

    panels = [[(attended, head) for head in range(len(attended.heads))] for attended in attention.kinds]
    label = CHARACTER * max(map(_columns, _texts(attention)))  # inches
    widths = [PITCH * max(len(kind.queries), len(kind.memory)) + MARGIN for kind in attention.kinds]
    height = TITLE + 2 * label + LINES + MARGIN
    width, total = sum(widths) + MARGIN, height * max(map(len, panels)) + MARGIN * 2
    figure = Figure(figsize=(width, total))
    figure.text(MARGIN / width, MARGIN / total / 2, CAPTION, color="#5c6670", fontsize=FONT_SIZE - 2)
    families = _families("".join(_texts(attention)))
    for column, of_kind in enumerate(panels):
        left = MARGIN + sum(widths[:column])
        for row, (attended, head) in enumerate(of_kind):
            bottom = total - height * (row + 1) + label
            box = (left / width, bottom / total, (widths[column] - MARGIN) / width, LINES / total)
            _draw_panel(figure.add_axes(box), attended, head, label / LINES, families)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # drawn as a box
        figure.savefig(file, format="png", dpi=min(DPI, MOST_PIXELS / max(width, total)))


def _draw_panel(axes: Axes, attended: Attended, head: int, label: float, families: list[str]) -> None:
    """Draws one head; `label` is the height that labels have, in heights of the lines between them."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    weights = attended.weights[-1, head]  # [query, memory]
    queries, memory = (_places(count, max(weights.shape)) for count in weights.shape)
    drawn = np.argwhere(weights >= LEAST)
    colour = COLOURS[(attended.heads[head] - 1) % len(COLOURS)]
    lines = [((queries[query], 1), (memory[place], 0)) for query, place in drawn]
    colours = [to_rgba(colour, min(float(weights[query, place]), 1)) for query, place in drawn]
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=2, capstyle="round"))
    style: dict[str, Any] = {
        "rotation": 90,
        "ha": "center",
        "fontsize": FONT_SIZE,
        "family": families,
        "parse_math": False,
    }
    for places, texts, height, side in (
        (queries, attended.queries, 1.03, "bottom"),
        (memory, attended.memory, -0.03, "top"),
    ):
        for place, text in zip(places, texts, strict=True):
            axes.text(place, height, text.translate(SPACE), va=side, **style)
    title = f"{TITLES[attended.kind]}, layer {attended.layers[-1]}, head {attended.heads[head]}"
    axes.text(-0.5, 1.1 + label, title, color=colour, fontsize=FONT_SIZE, family=families)
    axes.set_xlim(-0.5, max(weights.shape) - 0.5)
    axes.set_ylim(0, 1)
    axes.axis("off")


def _places(count: int, most: int) -> np.ndarray:
    """Where the tokens of a row stand: in the middle above or below a longer one."""
    return np.arange(count) + (most - count) / 2


def _texts(attention: Attention) -> Iterator[str]:
    for attended in attention.kinds:
        yield from attended.queries
        yield from attended.memory


def _columns(text: str) -> int:
    """How wide a text is, in characters; those of East Asia are two wide."""
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in text)


def _families(characters: Iterable[str]) -> list[str]:
    """Matplotlib's own font and, where it lacks characters, fonts of this machine that have them."""
    from matplotlib import font_manager

    families = [FAMILY]
    missing = {ord(character) for character in characters}
    missing -= _has(font_manager.findfont(FAMILY))
    for font in font_manager.fontManager.ttflist:
        if not missing:
            break
        if (font.style, font.weight) == ("normal", 400) and (found := missing & _has(font.fname)):
            families.append(font.name)
            missing -= found
    return families


def _has(path: str) -> set[int]:
    """Code points that a font's file has."""
    from matplotlib.ft2font import FT2Font

    return set(FT2Font(path).get_charmap())
