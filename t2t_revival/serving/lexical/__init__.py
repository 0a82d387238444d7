"""Phrases that outputs must have or must not have, as TensorFlow ops: from strings to constrained outputs."""
