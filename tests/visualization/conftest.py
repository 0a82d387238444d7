"""Attention without a model."""

import numpy as np
import pytest

from t2t_revival.addons.attention.attention import CROSS, DECODER, ENCODER, START, Attention, AttentionWeights
from tests.support.numpy_transformer import softmax

HOSTILE = [
    "</script>",
    '"',
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "\U0001f600",
    "שלום",
    "$data",
    "&amp;",
    "\u2028",
    "\u2581'\\",
    "<EOS>",
]
WRITTEN = ["مرحبا", "\u202eabc", "</style>", "<EOS>"]


@pytest.fixture
def hostile() -> Attention:
    """3 layers, in the decoder 2, of 4 heads, between tokens that may do harm to a page."""
    rng, heads = np.random.default_rng(7), (1, 2, 3, 4)

    def attended(kind: str, queries: list[str], memory: list[str], layers: int) -> AttentionWeights:
        scores = rng.normal(0, 3, (layers, len(heads), len(queries), len(memory)))
        if kind == DECODER:
            scores[..., np.triu(np.ones((len(queries), len(memory)), bool), 1)] = -1e9
        numbers, weights = tuple(range(1, layers + 1)), softmax(scores).astype("float32")
        return AttentionWeights(kind, queries, memory, numbers, heads, weights)

    kinds = (
        attended(ENCODER, HOSTILE, HOSTILE, 3),
        attended(DECODER, WRITTEN, [START, *WRITTEN[:-1]], 2),
        attended(CROSS, WRITTEN, HOSTILE, 2),
    )
    return Attention(" ".join(HOSTILE), " ".join(WRITTEN), kinds)
