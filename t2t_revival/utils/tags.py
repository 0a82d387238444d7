"""Tags: texts such as <2de> before a source, which tell a model the target's language or a corpus's kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from t2t_revival.errors import T2TError
from t2t_revival.utils.blank import is_blank

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies
    from t2t_revival.problems.text_problems import Text2TextProblem


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


def known_tags(vocabularies: Vocabularies, problem: Text2TextProblem | None) -> list[str]:
    """Returns the tags that lines may begin with; none of a parser, whose vocabulary has brackets instead."""
    is_text = problem is None or problem.targets_are_text
    return vocabularies.inputs.tags if is_text else []


def check_tag(tag: str, vocabularies: Vocabularies, problem: Text2TextProblem | None) -> None:
    """Raises T2TError if lines cannot begin with a tag; "" is none."""
    if not tag:
        return
    known = known_tags(vocabularies, problem)
    if tag not in known:
        listed = ", ".join(known) or "none"
        raise T2TError(f"decode_hparams: tag={tag} is none of the model's tags: {listed}")
