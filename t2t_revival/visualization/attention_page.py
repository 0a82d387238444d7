"""Attention as one page of HTML, which needs nothing else: figures 3 to 5 of the paper, to play with."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from t2t_revival.visualization.attention import COLOURS, CROSS, DECODER, ENCODER, Attended, Attention

FOLDER = Path(__file__).parent
LARGEST = 255  # stands for the weight 1
TITLES = {
    ENCODER: ("encoder", "each token of the input", "tokens of the input that it looks at"),
    DECODER: ("decoder", "token that is written", "tokens before it that it looks at"),
    CROSS: ("decoder over encoder", "token that is written", "tokens of the input that it looks at"),
}


def page(attention: Attention, about: str) -> str:
    """The page: style, script and weights are in it, and it may load nothing and run nothing else.

    Args:
        attention: what is drawn; each weight is rounded to the nearest 255th.
        about: a line that says of which model it is.
    """
    style, script = (
        FOLDER.joinpath(f"attention.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")
    )
    return Template(FOLDER.joinpath("attention.html").read_text(encoding="utf-8")).substitute(
        about=html.escape(about),
        data=_as_script(data(attention)),
        script=script,
        script_hash=_hash(script),
        style=style,
        style_hash=_hash(style),
    )


def data(attention: Attention) -> dict[str, Any]:
    """What the page's script is given, as JSON has it."""
    return {
        "source": attention.source,
        "target": attention.target,
        "colours": COLOURS,
        "kinds": [_kind(attended) for attended in attention.kinds],
    }


def _kind(attended: Attended) -> dict[str, Any]:
    title, queries_title, memory_title = TITLES[attended.kind]
    weights = np.rint(attended.weights * LARGEST).astype(np.uint8)
    return {
        "name": attended.kind,
        "title": title,
        "queriesTitle": queries_title,
        "memoryTitle": memory_title,
        "queries": attended.queries,
        "memory": attended.memory,
        "layers": attended.layers,
        "heads": attended.heads,
        "weights": base64.b64encode(weights.tobytes()).decode(),  # [layers, heads, query, memory]
    }


def _as_script(value: Any) -> str:
    """JSON in ASCII that can stand inside of a script element: no "<" ends it or opens a comment in it."""
    return json.dumps(value).replace("<", "\\u003c")


def _hash(text: str) -> str:
    """By which a content security policy knows a script or style."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
