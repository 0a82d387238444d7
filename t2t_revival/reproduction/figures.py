"""Figures 3 to 5 of the paper: self-attention in layer 5 of the 6 encoder layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np

from t2t_revival.addons.attention.attention import ENCODER, Attention, AttentionWeights, compute_attention
from t2t_revival.addons.attention.page import page
from t2t_revival.addons.attention.picture import draw
from t2t_revival.reproduction.runs import Runs
from t2t_revival.utils.files import atomic_write, write_whole

LAYER, OF_LAYERS = 5, 6
LAWS = (
    "It is in this spirit that a majority of American governments have passed new laws since 2009 making the "
    "registration or voting process more difficult."
)
LAW = (
    "The Law will never be perfect, but its application should be just - this is what we are missing, in my "
    "opinion."
)


def figure3(runs: Runs, on_message: Callable[[str], None]) -> list[Path]:
    """Draws the attention of each head from the word "making", in the paper to the distant "more difficult".

    Returns a PNG file, and an HTML page with all layers and heads.

    Raises:
        T2TError: the sentence has too many tokens to be drawn; or see `Runs`.
    """
    attention, encoder = _attention(runs, LAWS, on_message)
    return _write(runs, "figure3", attention, encoder.from_word("making"))


def figure4(runs: Runs, on_message: Callable[[str], None]) -> list[Path]:
    """Draws the two heads with the most attention from "its" to "Law" and "application".

    Returns and errors are those of `figure3`.
    """
    attention, encoder = _attention(runs, LAW, on_message)
    from_its = encoder.from_word("its")
    memory = [index for word in ("Law", "application") for index in encoder.token_indices(word)]
    received = from_its.weights[-1][:, :, memory].sum((1, 2))  # [heads]
    return _write(runs, "figure4", attention, _select_heads(from_its, np.argsort(-received)[:2].tolist()))


def figure5(runs: Runs, on_message: Callable[[str], None]) -> list[Path]:
    """Draws the two heads whose attention weights differ most.

    Returns and errors are those of `figure3`.
    """
    attention, encoder = _attention(runs, LAW, on_message)
    weights = encoder.weights[-1]  # [heads, query, memory]
    pairs = combinations(range(len(weights)), 2)
    most_different = max(pairs, key=lambda pair: float(np.abs(weights[pair[0]] - weights[pair[1]]).sum()))
    return _write(runs, "figure5", attention, _select_heads(encoder, list(most_different)))


def _attention(
    runs: Runs, sentence: str, on_message: Callable[[str], None]
) -> tuple[Attention, AttentionWeights]:
    """Returns the base model's attention, and the encoder layer that the paper shows."""
    from t2t_revival.decoding.translator import Translator

    runs.make_translation_data()
    output_dir = runs.train_translator("base")
    on_message(f"attention of the model in {output_dir}")
    attention = compute_attention(Translator.load(output_dir), sentence)
    encoder = next(weights for weights in attention.kinds if weights.kind == ENCODER)
    return attention, encoder.select(max(1, len(encoder.layers) * LAYER // OF_LAYERS), None)


def _select_heads(attention: AttentionWeights, indices: list[int]) -> AttentionWeights:
    heads = tuple(attention.heads[index] for index in indices)
    return dataclasses.replace(attention, heads=heads, weights=attention.weights[:, indices])


def _write(runs: Runs, name: str, attention: Attention, shown: AttentionWeights) -> list[Path]:
    picture, html = runs.folder / f"{name}.png", runs.folder / f"{name}.html"
    with atomic_write(picture) as file:
        draw(dataclasses.replace(attention, kinds=(shown,)), file)
    write_whole(html, page(attention, f"{name} of the paper, {runs.scale.name} scale").encode())
    return [picture, html]
