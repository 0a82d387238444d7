"""Section 3 of the paper, in its order: attention, feed_forward, embedding, residual, stacks, transformer.

Only `keras` and `keras.ops`: the model is bound to no backend. All layers can be used in any Keras model;
`Transformer` alone reads `HParams`, of which it makes the `LayerConfig` of its layers.
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
