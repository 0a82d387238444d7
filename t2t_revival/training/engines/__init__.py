"""Engines of a training: the devices and the compiled step, under TensorFlow and under JAX."""
