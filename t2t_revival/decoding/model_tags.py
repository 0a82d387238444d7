"""The tags that lines of a model may begin with; see `data.tags`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem


def known_tags(vocabularies: Vocabularies, problem: Problem | None) -> list[str]:
    """Returns the tags that lines may begin with; none of a parser, whose vocabulary has brackets instead."""
    is_text = problem is None or problem.targets_are_text
    return vocabularies.inputs.tags if is_text else []


def check_tag(tag: str, vocabularies: Vocabularies, problem: Problem | None) -> None:
    """Raises T2TError if lines cannot begin with a tag; "" is none."""
    if not tag:
        return
    known = known_tags(vocabularies, problem)
    if tag not in known:
        listed = ", ".join(known) or "none"
        raise T2TError(f"decode_hparams: tag={tag} is none of the model's tags: {listed}")
