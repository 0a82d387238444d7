"""Elements: which tags belong together, and which elements hold no text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from t2t_revival.addons.markup.patterns import CLOSE, ENTITY, ITEM, OPEN, TAG, Span, find

UNKNOWN = re.compile(  # begins or ends markup that is not whole
    r"</?[^\W\d]|</\d|\{[{%#]|[}%#]\}|\[\[|\]\]|[$%]\{|&(?:amp;)*lt;/?\w|\\(?:u00|x)3[cC]|\{\s*\w+\s*,\s*(?:plural|select)|<!--|-->"
)
MAX_DEPTH = 200  # of elements within each other; tags of deeper ones stand alone


@dataclass(frozen=True)
class Marked:
    """A line as texts and the spans between them.

    Attributes:
        spans: in the line's order, without entities; each `OPEN` has its `CLOSE`.
        texts: before, between and after the spans, with characters for entities; one more than spans.
        has_entities: whether the line had any.
        unbalanced: number of tags that have no partner, and stand alone.
        unknown: whether the texts have what looks like markup.
    """

    spans: list[Span]
    texts: list[str]
    has_entities: bool
    unbalanced: int
    unknown: bool


def parse(line: str, kind: str) -> Marked:
    """Returns the markup of a line; elements without words become one span each."""
    found = find(line, kind)
    entities = [span for span in found if span.shape == ENTITY]
    spans = [span for span in found if span.shape != ENTITY]
    partners = _partners(spans)
    alone = [span.shape in (OPEN, CLOSE) and partners[index] is None for index, span in enumerate(spans)]
    spans = [span._replace(shape=TAG) if one else span for span, one in zip(spans, alone, strict=True)]
    spans = _merged(spans, partners, _texts(line, spans, entities))
    rest = " ".join(_texts(line, spans, []))
    unknown = bool(UNKNOWN.search(rest)) or rest.count("{") != rest.count("}")
    return Marked(spans, _texts(line, spans, entities), bool(entities), sum(alone), unknown)


def _partners(spans: Sequence[Span]) -> list[int | None]:
    """Returns the index of each tag's partner; a closing tag ends the innermost element of its name."""
    partners: list[int | None] = [None] * len(spans)
    begun: list[int] = []
    names: Counter[str] = Counter()  # of those in `begun`
    for index, span in enumerate(spans):
        if span.shape == OPEN and len(begun) < MAX_DEPTH:
            begun.append(index)
            names[span.name] += 1
        if span.shape != CLOSE or not names[span.name]:
            continue
        first = begun.pop()
        names[spans[first].name] -= 1
        while spans[first].name != span.name:
            first = begun.pop()
            names[spans[first].name] -= 1
        partners[first], partners[index] = index, first
    return partners


def _texts(line: str, spans: Sequence[Span], entities: Sequence[Span]) -> list[str]:
    texts, following = [], 0  # the number of the first entity that is not before a text
    starts, ends = [0, *(span.end for span in spans)], [*(span.start for span in spans), len(line)]
    for start, end in zip(starts, ends, strict=True):
        parts, position = [], start
        while following < len(entities) and entities[following].start < end:
            entity, following = entities[following], following + 1
            if entity.start >= start:
                parts += [line[position : entity.start], entity.name]
                position = entity.end
        texts.append("".join([*parts, line[position:end]]))
    return texts


def _merged(spans: Sequence[Span], partners: Sequence[int | None], texts: Sequence[str]) -> list[Span]:
    """Makes one span of each element without text."""
    merged: list[Span] = []
    index = 0
    while index < len(spans):
        last = partners[index]
        if last is None or last < index or any(map(str.strip, texts[index + 1 : last + 1])):
            merged.append(spans[index])
            index += 1
            continue
        inner = spans[index : last + 1]
        shape = ITEM if any(one.shape == ITEM for one in inner) else TAG
        breaks = any(one.breaks for one in inner)
        merged.append(Span(inner[0].start, inner[-1].end, shape, inner[0].name, breaks))
        index = last + 1
    return merged
