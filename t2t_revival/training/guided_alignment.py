"""Guided alignment: a head of the attention over the encoder's output learns given word alignments.

Reference: Chen et al., 2016, "Guided Alignment Training for Topic-Aware Neural Machine Translation"; Garg et
al., 2019, "Jointly Learning to Align and Translate with Transformer Models".
"""

from __future__ import annotations

from typing import Any

from keras import ops

LEAST = 1e-9  # of a weight whose logarithm is taken


def alignment_losses(attention: Any, alignments: Any) -> Any:
    """Cross-entropy of the head's weights against the aligned source tokens of each target token.

    The head aligns a token where it is read, a position after the one where it is predicted.

    Args:
        attention: the head's weights, [batch, target, source].
        alignments: shares of source tokens, float [batch, target, source]; 0 for a target token about which
            nothing is known, else with a sum of 1.

    Returns:
        float32 [batch, target], in nats; 0 where nothing is known, and at the last position.
    """
    read = ops.log(ops.maximum(ops.cast(attention[:, 1:], "float32"), LEAST))
    losses = -ops.sum(alignments[:, :-1] * read, axis=-1)
    return ops.pad(losses, [[0, 0], [0, 1]])
