"""Figures 3 to 5 of the paper: what the encoder's last layer but one of six looks at."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np

from t2t_revival.files import writing
from t2t_revival.reproduction.runs import Runs
from t2t_revival.visualization.attention import ENCODER, Attended, Attention, attend

LAYER, OF = 5, 6  # the paper's figures show layer 5 of 6
LAWS = (
    "It is in this spirit that a majority of American governments have passed new laws since 2009 making the "
    "registration or voting process more difficult."
)
LAW = (
    "The Law will never be perfect, but its application should be just - this is what we are missing, in my "
    "opinion."
)


def figure3(runs: Runs, say: Callable[[str], None]) -> list[Path]:
    """What each head sees from the word "making", in the paper of its distant "more difficult".

    Returns:
        A PNG, and a page with all layers and heads.

    Raises:
        T2TError: the sentence has more tokens than can be drawn; or as `Runs`.
    """
    attention, encoder = _attention(runs, LAWS, say)
    return _written(runs, "figure3", attention, encoder.looking_from("making"))


def figure4(runs: Runs, say: Callable[[str], None]) -> list[Path]:
    """Two heads from the word "its", those that look most at "Law" and "application".

    Returns and raises what `figure3` does.
    """
    attention, encoder = _attention(runs, LAW, say)
    from_its = encoder.looking_from("its")
    memory = [place for word in ("Law", "application") for place in encoder.places(word)]
    seen = from_its.weights[-1][:, :, memory].sum((1, 2))  # [heads]
    return _written(runs, "figure4", attention, _heads(from_its, np.argsort(-seen)[:2].tolist()))


def figure5(runs: Runs, say: Callable[[str], None]) -> list[Path]:
    """The two heads that differ most in what they look at.

    Returns and raises what `figure3` does.
    """
    attention, encoder = _attention(runs, LAW, say)
    weights = encoder.weights[-1]  # [heads, query, memory]
    pairs = combinations(range(len(weights)), 2)
    chosen = max(pairs, key=lambda pair: float(np.abs(weights[pair[0]] - weights[pair[1]]).sum()))
    return _written(runs, "figure5", attention, _heads(encoder, list(chosen)))


def _attention(runs: Runs, sentence: str, say: Callable[[str], None]) -> tuple[Attention, Attended]:
    """Of the base model: all of it, and the encoder's layer that the paper shows."""
    from t2t_revival.decoding.translator import Translator

    runs.make_translations()
    place = runs.translator("base")
    translator = Translator.load(place)
    say(f"attention of the model in {place}")
    attention = attend(translator, sentence)
    encoder = next(kind for kind in attention.kinds if kind.kind == ENCODER)
    return attention, encoder.narrowed(max(1, len(encoder.layers) * LAYER // OF), None)


def _heads(attended: Attended, heads: list[int]) -> Attended:
    """Some heads only, by their places."""
    return dataclasses.replace(
        attended, heads=tuple(attended.heads[head] for head in heads), weights=attended.weights[:, heads]
    )


def _written(runs: Runs, name: str, attention: Attention, shown: Attended) -> list[Path]:
    from t2t_revival.visualization.attention_page import page
    from t2t_revival.visualization.attention_picture import draw

    picture, html = runs.folder / f"{name}.png", runs.folder / f"{name}.html"
    with writing(picture) as file:
        draw(dataclasses.replace(attention, kinds=(shown,)), file)
    with writing(html) as file:
        file.write(page(attention, f"{name} of the paper, {runs.scale.name} scale").encode())
    return [picture, html]
