"""Section 3 of the paper, in its order: attention, feed_forward, embedding, residual, stacks, transformer.

Only `keras` and `keras.ops`: the model is bound to no backend. All layers can be used in any Keras model;
`Transformer` alone reads `HParams`, of which it makes the `LayerConfig` of its layers.

Shapes are written as [batch, length, hidden], by these names:

    batch: sentences, of which `beams` hypotheses each are decoded
    length: positions of a sentence; `source` and `target` where there are two, `positions` of any kind
    query, memory: positions that attend, and that are attended to
    blocks, block, near: of restricted attention; positions of a block, and those that it meets
    hidden: d_model, channels of embeddings and sub-layer outputs
    filter: d_ff, channels of the feed-forward network's inner layer
    heads, key, value: h, and d_k and d_v, channels of one head
    layers: N
    vocab, tokens: tokens of the vocabulary; some of them, or of a batch
    rows, channels, outputs, columns: of matrices whose rows are positions, and of others
    places, pairs, groups, parts: of distances, of channels, of random bytes, of products side by side
"""

from t2t_revival.model.attention import MultiHeadAttention
from t2t_revival.model.dropout import Dropout
from t2t_revival.model.embedding import PositionalEncoding, TokenEmbedding
from t2t_revival.model.feed_forward import FeedForward
from t2t_revival.model.incremental import DecoderState
from t2t_revival.model.layer import LayerConfig
from t2t_revival.model.norms import LayerNorm
from t2t_revival.model.residual import Residual
from t2t_revival.model.stacks import Decoder, DecoderLayer, Encoder, EncoderLayer
from t2t_revival.model.transformer import AttentionWeights, Transformer

__all__ = [
    "AttentionWeights",
    "Decoder",
    "DecoderLayer",
    "DecoderState",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerConfig",
    "LayerNorm",
    "MultiHeadAttention",
    "PositionalEncoding",
    "Residual",
    "TokenEmbedding",
    "Transformer",
]
