"""Section 3 of the paper, in its order: attention, feed_forward, embedding, stacks, transformer.

Only `keras` and `keras.ops`: the model runs on every Keras backend.
"""

from t2t_revival.model.transformer import DecoderState, Transformer

__all__ = ["DecoderState", "Transformer"]
