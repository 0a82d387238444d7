"""Section 3 of the paper, in its order: attention, feed_forward, embedding, stacks, transformer.

Only `keras` and `keras.ops`: the model is bound to no backend.
"""

from t2t_revival.model.transformer import DecoderState, Transformer

__all__ = ["DecoderState", "Transformer"]
