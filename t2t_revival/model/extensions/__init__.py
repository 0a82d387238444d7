"""Attention that the paper proposes or a task needs beside the base model."""
