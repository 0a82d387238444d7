"""Tags: texts such as <2de> before a source, which tell a model the target's language or a corpus's kind."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_revival.utils.blank import is_blank


def symbol(tag: str) -> str:
    """Returns what stands before a source and is one piece of the vocabulary: the tag and a space."""
    return f"{tag} " if tag else ""


def tagged(texts: Sequence[str], tag: str) -> list[str]:
    """Returns texts with a tag before those that are not blank and do not have it."""
    prefix = symbol(tag)
    return [text if is_blank(text) or text.startswith(prefix) else prefix + text for text in texts]


def leading_tag(line: str, tags: Sequence[str]) -> str:
    """Returns the tag that a line begins with and its space; "" where it is none of some tags."""
    first, space, _ = line.partition(" ")
    return first + space if space and first in tags else ""
