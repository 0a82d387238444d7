"""Tags: texts such as <2de> before a source, which tell a model the target's language or a corpus's kind."""

from __future__ import annotations

from collections.abc import Sequence


def symbol(tag: str) -> str:
    """Returns what stands before a source and is one piece of the vocabulary: the tag and a space."""
    return f"{tag} " if tag else ""


def tagged(texts: Sequence[str], tag: str) -> list[str]:
    """Returns texts with a tag before those that are not blank and do not have it."""
    prefix = symbol(tag)
    return [text if not text.strip() or text.startswith(prefix) else prefix + text for text in texts]
