"""The Transformer of "Attention Is All You Need", as tensor2tensor offered it, on Keras 3."""

from t2t_revival.native_log import quiet_tensorflow

__version__ = "0.1.0"

quiet_tensorflow()
