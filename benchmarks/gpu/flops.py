"""Floating-point operations of a training step, counted from the model's sizes.

Counted are the matrix products of the paper's equations, 2 operations for a multiplication and an addition:
those of the forward pass, and twice as many backward, for the gradients of both factors. Attention and
softmax are among them. Norms, dropout, residuals, exponentials and Adam are not. Padding is no work: each
product is counted over tokens only. Decoder self-attention is counted over all pairs of positions, as it is
computed, though half are masked.
"""

from __future__ import annotations

import numpy as np

from t2t_revival.hparams import HParams

MULTIPLY_ADD = 2
FORWARD_AND_BACKWARD = 3


def training_flops(hparams: HParams, vocab_size: int, sources: np.ndarray, targets: np.ndarray) -> int:
    """Of one step over sentence pairs.

    Args:
        hparams: the model's sizes.
        vocab_size: tokens.
        sources: tokens of each source sentence, int [pairs].
        targets: tokens of each target sentence, int [pairs].
    """
    h = hparams
    source, target = int(sources.sum()), int(targets.sum())
    feed_forward = 2 * h.hidden_size * h.filter_size
    queries, outputs = h.hidden_size * h.key_channels, h.value_channels * h.hidden_size
    keys_values = h.hidden_size * (h.key_channels + h.value_channels)
    heads = h.key_channels + h.value_channels  # of one pair of positions: a score, and its share of the value
    attention = queries + keys_values + outputs  # of one position over its own sentence
    encoder = source * (attention + feed_forward) + int((sources**2).sum()) * heads
    decoder = target * (attention + queries + outputs + feed_forward) + source * keys_values
    decoder += int((targets**2 + targets * sources).sum()) * heads
    softmax = target * h.hidden_size * vocab_size
    products = h.encoder_layers * encoder + h.decoder_layers * decoder + softmax
    return FORWARD_AND_BACKWARD * MULTIPLY_ADD * products
