"""Attention weights as a self-contained, interactive HTML page, after figures 3 to 5 of the paper."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from t2t_revival.addons.attention.attention import (
    COLOURS,
    CROSS,
    DECODER,
    ENCODER,
    TITLES,
    Attention,
    AttentionWeights,
)

FOLDER = Path(__file__).parent
MAX_LEVEL = 255  # stands for the weight 1
SIDES = {  # titles of the queries and of the memory
    ENCODER: ("query: input token", "attends to: input tokens"),
    DECODER: ("query: output token", "attends to: earlier output tokens"),
    CROSS: ("query: output token", "attends to: input tokens"),
}


def page(attention: Attention, about: str) -> str:
    """Returns the page with its style, script and weights; it loads nothing and runs no other script.

    Weights are rounded to multiples of 1/255; `about` is one line that names the model.
    """
    style_hash, script_hash = hashes()
    return Template(_file("html")).substitute(
        about=html.escape(about),
        data=json.dumps(data(attention)).replace("<", "\\u003c"),  # "</script>" would end the script
        script=_file("js"),
        script_hash=script_hash,
        style=_file("css"),
        style_hash=style_hash,
    )


def hashes() -> tuple[str, str]:
    """Returns the hashes that name the page's style and script in a content security policy."""
    return _hash(_file("css")), _hash(_file("js"))


def data(attention: Attention) -> dict[str, Any]:
    """Returns the JSON data of the page's script."""
    return {
        "source": attention.source,
        "target": attention.target,
        "colours": COLOURS,
        "kinds": [_kind(weights) for weights in attention.kinds],
    }


def _kind(attention: AttentionWeights) -> dict[str, Any]:
    queries_title, memory_title = SIDES[attention.kind]
    weights = np.rint(attention.weights * MAX_LEVEL).astype(np.uint8)
    return {
        "name": attention.kind,
        "title": TITLES[attention.kind],
        "queriesTitle": queries_title,
        "memoryTitle": memory_title,
        "queries": attention.queries,
        "memory": attention.memory,
        "layers": attention.layers,
        "heads": attention.heads,
        "weights": base64.b64encode(weights.tobytes()).decode(),  # [layers, heads, query, memory]
    }


def _file(kind: str) -> str:
    return FOLDER.joinpath(f"attention.{kind}").read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
