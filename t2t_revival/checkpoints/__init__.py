"""Checkpoint files, folders of checkpoints, the best of a training, and the one to use a model with."""
