"""Attention weights as a picture, after figures 3 to 5 of the paper."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from t2t_revival.addons.attention.attention import COLOURS, TITLES, Attention, AttentionWeights
from t2t_revival.data.vocabulary.sentencepiece import SPACE_MARK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CAPTION = "Lines lead from each query (top) to the tokens it attends to (bottom); opacity shows the weight."
FAMILY = "DejaVu Sans"  # comes with matplotlib
FONT_SIZE = 11  # points
PITCH, LINES, CHARACTER, TITLE, MARGIN = 0.3, 1.7, 0.105, 0.35, 0.25  # inches
SPACE = str.maketrans(SPACE_MARK, "·")  # rotated, the mark itself would look like a line
MIN_WEIGHT = 0.02  # smaller weights are not drawn
DPI, MAX_PIXELS = 150, 8_000


def draw(attention: Attention, file: BinaryIO) -> None:
    """Draws the last layer of each kind as PNG: a column for each kind, a row for each head."""
    from matplotlib.figure import Figure

    panels = [[(kind, head) for head in range(len(kind.heads))] for kind in attention.kinds]
    label = CHARACTER * max(map(_columns, _texts(attention)))  # inches
    widths = [PITCH * max(len(kind.queries), len(kind.memory)) + MARGIN for kind in attention.kinds]
    height = TITLE + 2 * label + LINES + MARGIN
    width, total = sum(widths) + MARGIN, height * max(map(len, panels)) + MARGIN * 2
    figure = Figure(figsize=(width, total))
    figure.text(MARGIN / width, MARGIN / total / 2, CAPTION, color="#5c6670", fontsize=FONT_SIZE - 2)
    families = _families("".join(_texts(attention)))
    for column, of_kind in enumerate(panels):
        left = MARGIN + sum(widths[:column])
        for row, (kind, head) in enumerate(of_kind):
            bottom = total - height * (row + 1) + label
            box = (left / width, bottom / total, (widths[column] - MARGIN) / width, LINES / total)
            _draw_panel(figure.add_axes(box), kind, head, label / LINES, families)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # drawn as a box
        figure.savefig(file, format="png", dpi=min(DPI, MAX_PIXELS / max(width, total)))


def _draw_panel(
    axes: Axes, attention: AttentionWeights, head: int, label: float, families: list[str]
) -> None:
    """Draws one head; `label` is the height of the labels, in units of the height of the lines."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    weights = attention.weights[-1, head]  # [query, memory]
    queries, memory = (np.arange(count) + (max(weights.shape) - count) / 2 for count in weights.shape)
    drawn = np.argwhere(weights >= MIN_WEIGHT)
    colour = COLOURS[(attention.heads[head] - 1) % len(COLOURS)]
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
        (queries, attention.queries, 1.03, "bottom"),
        (memory, attention.memory, -0.03, "top"),
    ):
        for place, text in zip(places, texts, strict=True):
            axes.text(place, height, text.translate(SPACE), va=side, **style)
    title = f"{TITLES[attention.kind]}, layer {attention.layers[-1]}, head {attention.heads[head]}"
    axes.text(-0.5, 1.1 + label, title, color=colour, fontsize=FONT_SIZE, family=families)
    axes.set_xlim(-0.5, max(weights.shape) - 0.5)
    axes.set_ylim(0, 1)
    axes.axis("off")


def _texts(attention: Attention) -> Iterator[str]:
    for kind in attention.kinds:
        yield from kind.queries
        yield from kind.memory


def _columns(text: str) -> int:
    """Returns the width of a text in characters; East Asian wide characters count twice."""
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in text)


def _families(characters: Iterable[str]) -> list[str]:
    """Returns matplotlib's own font, and installed fonts with the characters that it lacks."""
    from matplotlib import font_manager

    families = [FAMILY]
    missing = {ord(character) for character in characters}
    missing -= _code_points(font_manager.findfont(FAMILY))
    for font in font_manager.fontManager.ttflist:
        if not missing:
            break
        if (font.style, font.weight) == ("normal", 400) and (found := missing & _code_points(font.fname)):
            families.append(font.name)
            missing -= found
    return families


def _code_points(path: str) -> set[int]:
    """Returns the code points of a font file."""
    from matplotlib.ft2font import FT2Font

    return set(FT2Font(path).get_charmap())
