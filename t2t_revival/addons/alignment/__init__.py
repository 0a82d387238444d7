"""The attention heads that align words, chosen for a model."""
