"""`Plain`: a line without its markup, and the marks that were taken out of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from t2t_revival.addons.markup.elements import Marked, parse
from t2t_revival.addons.markup.patterns import CLOSE, ITEM, OPEN
from t2t_revival.decoding.options import HTML

CLOSING = re.compile(r"""[,.;:!?%)\]}"'»”’…。，、；：！？）」』]+(?:\s|$)""")  # noqa: RUF001
OPENING = re.compile(r"""(?:^|\s)[(\[{"'«„“‘¿¡（「『]+$""")  # noqa: RUF001


class Mark(NamedTuple):
    """A piece of markup, byte for byte.

    Attributes:
        text: its characters.
        shape: see `Span`; an element without words is one `ITEM` or `TAG`.
        breaks: see `Span`.
        place: number of characters of the plain text before it.
        before, after: whether white space or the line's end is directly beside it.
        glued_left, glued_right: whether it touches a word, perhaps with other marks between.
        follows: whether nothing but space is between it and the mark before it.
    """

    text: str
    shape: str
    breaks: bool
    place: int
    before: bool
    after: bool
    glued_left: bool
    glued_right: bool
    follows: bool


@dataclass(frozen=True)
class Plain:
    """A line without its markup.

    Attributes:
        line: the line as it was.
        text: the words to translate.
        marks: in the line's order.
        escaped: whether the line writes &, < and > of its text as entities.
        unbalanced: number of tags that have no partner.
        unknown: whether the text has what looks like markup.
    """

    line: str
    text: str
    marks: tuple[Mark, ...] = ()
    escaped: bool = False
    unbalanced: int = 0
    unknown: bool = False


def take_out(line: str, kind: str) -> Plain:
    """Takes the markup out of a line; without any, its text is the line.

    Args:
        line: any text.
        kind: one of `MARKUP`.
    """
    marked = parse(line, kind)
    tags = [line[span.start] for span in marked.spans if span.shape != ITEM]
    escaped = marked.has_entities or "&" in tags or (kind.startswith(HTML) and "<" in tags)
    if not marked.spans:
        return Plain(line, marked.texts[0], escaped=escaped, unknown=marked.unknown)
    text, marks = marked.texts[0].strip(), []
    last = len(marked.spans)
    words = [number for number in range(1, last) if marked.texts[number].strip()]
    for first, end in zip([0, *words], [*words, last], strict=True):  # spans with only space between
        gap, run = _run(line, marked, first, end, len(text))
        marks += run
        text += gap + marked.texts[end].strip()
    return Plain(line, text, tuple(marks), escaped, marked.unbalanced, marked.unknown)


def _run(line: str, marked: Marked, first: int, end: int, place: int) -> tuple[str, list[Mark]]:
    """Returns the space between the words around a run of spans, and its marks."""
    left, *inner, right = marked.texts[first : end + 1]
    has_left, has_right = bool(left.strip()), bool(right.strip())
    spaces = [left[-1:].isspace(), *map(bool, inner), right[:1].isspace()]
    numbers = range(end - first)
    touches_left = has_left and not OPENING.search(left)
    touches_right = has_right and not CLOSING.match(right)
    glued_left = [touches_left and not any(spaces[: number + 1]) for number in numbers]
    glued_right = [touches_right and not any(spaces[number + 1 :]) for number in numbers]
    spans = marked.spans[first:end]
    needed = any(spaces) or any(span.breaks for span in spans)
    joins = (not spaces[-1] and not touches_right) or (not spaces[0] and not touches_left)
    gap = " " if has_left and has_right and needed and not joins else ""
    beyond = [
        span.shape != CLOSE and (span.shape == OPEN or (glued_right[number] and not glued_left[number]))
        for number, span in enumerate(spans)
    ]
    marks = [
        Mark(
            line[span.start : span.end],
            span.shape,
            span.breaks,
            place + len(gap) * is_beyond,
            spaces[number] or (number == 0 and not has_left),
            spaces[number + 1] or (number == len(spans) - 1 and not has_right),
            glued_left[number],
            glued_right[number],
            number > 0,
        )
        for number, (span, is_beyond) in enumerate(zip(spans, accumulate(beyond, max), strict=True))
    ]
    return gap, marks


def describe_faults(lines: Sequence[str], kind: str, first_line: int = 1) -> list[str]:
    """Returns lines for people about tags that have no partner, and about markup that is not recognised."""
    plains = [take_out(line, kind) for line in lines]
    faults = {
        "tags without their start or end tag, which are placed each for itself": "unbalanced",
        "what looks like markup is incomplete or not recognised, and is translated as text": "unknown",
    }
    described = []
    for fault, attribute in faults.items():
        if found := [number for number, one in enumerate(plains, first_line) if getattr(one, attribute)]:
            others = f", and {len(found) - 1:,} more lines" if len(found) > 1 else ""
            described.append(f"line {found[0]}{others}: {fault}")
    return described
