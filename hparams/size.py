"""The number of weights of a model, from its hyperparameters alone."""

from __future__ import annotations

from t2t_revival.hparams.hparams import HParams
from t2t_revival.hparams.variants import FEED_FORWARDS


def count_weights(hparams: HParams, vocab_size: int, target_vocab_size: int | None = None) -> int:
    """Returns the number of weights of a model, as in table 3's column "params".

    The target has the source's vocabulary, or one of its own with `target_vocab_size` tokens.
    """
    hidden, keys, values = hparams.hidden_size, hparams.key_channels, hparams.value_channels
    norm = hidden * (2 if hparams.norm_type == "layer" else 1)
    attention = 2 * hidden * (keys + values) + (2 * keys + values + hidden) * hparams.projection_bias
    relative = 0
    if hparams.pos == "relative":
        relative = (2 * hparams.max_relative_position + 1) * (keys + values) // hparams.num_heads
    self_attention = attention + relative
    recurrent = 2 * hidden * hidden + hidden if hparams.decoder_self_attention == "ssru" else 0
    is_gated = FEED_FORWARDS[hparams.ffn_activation].is_gated
    first, second = (
        3 * hidden * inner if is_gated else 2 * hidden * inner + inner + hidden
        for inner in (hparams.filter_size, hparams.decoder_channels)
    )
    encoder = hparams.encoder_layers * (self_attention + first + 2 * norm)
    decoder = hparams.decoder_layers * ((recurrent or self_attention) + attention + second + 3 * norm)
    final_norms = 2 * norm * hparams.pre_norm
    targets, shared = target_vocab_size or vocab_size, hparams.shared_embedding_and_softmax_weights
    embeddings = hidden * targets * (1 if shared else 2)
    embeddings += hidden * vocab_size * (not shared or target_vocab_size is not None)
    positions = 2 * hparams.max_length * hidden if hparams.pos == "emb" else 0
    others = hidden * hparams.use_target_space_embedding + targets * hparams.softmax_bias
    others += (hidden * hidden + 3 * vocab_size) * hparams.deterministic_attention
    return encoder + decoder + final_norms + embeddings + positions + others
