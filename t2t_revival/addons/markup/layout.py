"""Layout: the places of marks in a translation, where elements stay in the elements that they were in."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge

from t2t_revival.addons.markup.patterns import CLOSE, ITEM, OPEN
from t2t_revival.addons.markup.plain import Mark
from t2t_revival.addons.markup.units import Alignment, Unit, proportional


@dataclass
class Element:
    """An element, or the whole line.

    Attributes:
        first, last: numbers of its tags; of the line, -1 and the number of marks.
        units: numbers of its source units.
        outputs: numbers of the output units between its tags.
        start, end: offsets of its tags in the output.
        children: elements, and numbers of marks that stand alone, in the source's order.
    """

    first: int
    last: int
    units: range
    outputs: range = range(0)
    start: int = 0
    end: int = 0
    children: list[Element | int] = field(default_factory=list)

    @property
    def elements(self) -> list[Element]:
        """Elements among the children."""
        return [child for child in self.children if isinstance(child, Element)]


def lay_out(marks: Sequence[Mark], output: str, alignment: Alignment) -> list[tuple[int, int]]:
    """Returns the offset in the output and the number of each mark, from left to right."""
    root = _tree(marks, alignment.sources)
    root.outputs, root.end = range(len(alignment.outputs)), len(output)
    _arrange(root, alignment)
    return list(_offsets(root, marks, alignment))


def _tree(marks: Sequence[Mark], sources: Sequence[Unit]) -> Element:
    starts = [unit.start for unit in sources]
    root = Element(-1, len(marks), range(len(sources)))
    path = [root]
    for number, mark in enumerate(marks):
        if mark.shape == OPEN:
            path.append(Element(number, number, range(bisect_left(starts, mark.place), len(sources))))
            path[-2].children.append(path[-1])
        elif mark.shape == CLOSE:
            element = path.pop()
            element.last = number
            element.units = range(element.units.start, bisect_left(starts, mark.place))
        else:
            path[-1].children.append(number)
    return root


def _arrange(parent: Element, alignment: Alignment) -> None:
    """Places the tags of the elements in an element, and of those in them."""
    place, unit = parent.start, parent.outputs.start  # behind the elements so far
    runs = _runs(parent, alignment.links)
    for child, run in zip(parent.elements, runs, strict=True):
        if child.units == parent.units:
            child.outputs, child.start, child.end = parent.outputs, parent.start, parent.end
        elif run:
            child.outputs = range(run[0], run[-1] + 1)
            child.start, child.end = alignment.outputs[run[0]].start, alignment.outputs[run[-1]].end
        else:  # all its words are those of other elements
            child.outputs = range(unit, unit)
            child.start = child.end = place
        _arrange(child, alignment)
        place, unit = child.end, child.outputs.stop


def _runs(parent: Element, links: Sequence[set[int]]) -> list[list[int]]:
    """Returns the output units of each element in an element; between them are none of another.

    An output unit is of the element that has most links to it. Where those of an element are apart, with
    another's between, the ones with most links count.
    """
    children = parent.elements
    linked = [_votes(child, links, parent.outputs) for child in children]
    guessed = [
        Counter(t for u in child.units for t in proportional(u, parent.units, parent.outputs))
        for child in children
    ]
    owners: dict[int, int] = {}
    for votes in (
        linked,
        [guess if not own else Counter() for own, guess in zip(linked, guessed, strict=True)],
    ):
        for unit in set().union(*votes) - owners.keys():
            owners[unit] = max(range(len(children)), key=lambda number: (votes[number][unit], -number))
    parts: list[list[list[int]]] = [[] for _ in children]
    previous = None
    for unit, owner in sorted(owners.items()):
        if owner != previous:
            parts[owner].append([])
        parts[owner][-1].append(unit)
        previous = owner
    return [
        max(found, key=lambda run: sum(votes[unit] for unit in run), default=[])
        for found, votes in zip(parts, linked, strict=True)
    ]


def _votes(element: Element, links: Sequence[set[int]], outputs: range) -> Counter[int]:
    return Counter(unit for number in element.units for unit in links[number] if unit in outputs)


def _offsets(element: Element, marks: Sequence[Mark], alignment: Alignment) -> Iterator[tuple[int, int]]:
    """Yields the offset and number of each mark in an element, from left to right."""
    places: list[tuple[int, bool, int, Element | int]] = []
    for order, child in enumerate(element.children):
        if isinstance(child, Element):
            places.append((child.start, child.end > child.start, order, child))
        else:
            places.append((_offset(element, marks[child], alignment), False, order, child))
    for offset, _, _, child in sorted(places, key=lambda place: place[:3]):
        if not isinstance(child, Element):
            yield offset, child
            continue
        yield child.start, child.first
        yield from _offsets(child, marks, alignment)
        yield child.end, child.last


def _offset(element: Element, mark: Mark, alignment: Alignment) -> int:
    """Returns the place of a mark that stands alone."""
    sources = alignment.sources
    after = bisect_left(sources, mark.place, key=lambda unit: unit.start)
    has_left, has_right = after > element.units.start, after < element.units.stop
    if mark.shape != ITEM or mark.breaks:
        if not has_left:
            return element.start
        if not has_right:
            return element.end
    by_right = not has_left or (
        has_right and sources[after].start == mark.place and sources[after - 1].end < mark.place
    )
    is_inside = has_left and has_right and sources[after - 1].word == sources[after].word
    offset, is_after = _beside(element, after, by_right, mark.breaks and not is_inside, alignment)
    offset = min(max(offset, element.start), element.end)
    for other in element.elements:
        if other.start < offset < other.end:
            return other.end if is_after else other.start
    return offset


def _beside(
    element: Element, after: int, by_right: bool, by_word: bool, alignment: Alignment
) -> tuple[int, bool]:
    """Returns a place beside the output of the nearest source unit, and whether it is behind that.

    Args:
        element: its units count.
        after: number of the source unit after the place.
        by_right: whether of equally near words the one after the place counts.
        by_word: whether punctuation stays before the place.
        alignment: has the units.
    """
    sources, outputs, links = alignment
    words = {True: sources[after - 1].word if after else 0, False: sources[min(after, len(sources) - 1)].word}

    def distance(number: int) -> tuple[int, bool, int]:
        is_left = number < after
        return abs(sources[number].word - words[is_left]), is_left == by_right, abs(number - after)

    units = element.units
    left = range(min(after, units.stop) - 1, units.start - 1, -1)
    right = range(max(after, units.start), units.stop)
    for number in merge(left, right, key=distance):  # each side is in this order already
        found = [unit for unit in links[number] if unit in element.outputs]
        if found and number >= after:
            return outputs[min(found)].start, False
        if found:
            last = outputs[max(found)]
            ends = [unit.end for unit in outputs if unit.word == last.word] if by_word else [last.end]
            return max(ends), True
    return (element.start, False) if by_right else (element.end, True)
