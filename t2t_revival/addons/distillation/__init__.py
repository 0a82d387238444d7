"""Sequence-level knowledge distillation (Kim and Rush, 2016): a student learns its teacher's outputs."""
