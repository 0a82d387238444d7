"""Checkpoint files, folders of checkpoints, and averages."""
