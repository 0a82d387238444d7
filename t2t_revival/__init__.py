"""The Transformer of "Attention Is All You Need", as tensor2tensor offered it, on Keras 3."""

__version__ = "0.1.0"
