"""Units: words cut at the punctuation around them and at marks, and which of them translate which."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple
from unicodedata import category

from t2t_revival.data.vocabulary.spans import split_words

Links = Iterable[tuple[int, int]]  # numbers of a source word and of an output word


class Unit(NamedTuple):
    """Characters `start` to `end` of a text, and the number of the word that they are of."""

    start: int
    end: int
    word: int


class Alignment(NamedTuple):
    """Units of source and output.

    Attributes:
        sources: units of the source.
        outputs: units of the output.
        links: numbers of output units, for each source unit; some are linked unless the output is blank.
    """

    sources: list[Unit]
    outputs: list[Unit]
    links: list[set[int]]


def align_units(source: str, places: Iterable[int], output: str, links: Links) -> Alignment:
    """Returns the units that linked words consist of; without links, units are linked by proportion.

    Args:
        source: the plain text.
        places: offsets in it at which words are cut.
        output: its translation.
        links: word alignment; numbers beyond the words are ignored.
    """
    words, translations = map(split_words, (source, output))
    ordered = sorted(set(places))
    within = (ordered[bisect_right(ordered, start) : bisect_left(ordered, end)] for start, end in words)
    cuts = [_edges(source, word) | {*found} for word, found in zip(words, within, strict=True)]
    output_cuts = [_edges(output, word) for word in translations]
    across: dict[tuple[int, int], dict[int, int | None]] = {}
    for one, other in sorted(set(links)):
        if 0 <= one < len(words) and 0 <= other < len(translations):
            found = {cut: _across(source, words[one], cut, output, translations[other]) for cut in cuts[one]}
            across[one, other] = found
            output_cuts[other].update(cut for cut in found.values() if cut is not None)
    sources, outputs = _units(cuts), _units(output_cuts)
    of_source, of_output = _by_word(sources), _by_word(outputs)
    linked: list[set[int]] = [set() for _ in sources]
    for (one, other), found in across.items():
        first, last = _core(output, translations[other])
        for number in of_source[one]:
            left, right = found[sources[number].start], found[sources[number].end]
            left, right = first if left is None else left, last if right is None else right
            inside = (
                unit
                for unit in of_output[other]
                if left <= outputs[unit].start and outputs[unit].end <= right
            )
            linked[number].update(inside)
    if not any(linked):
        linked = [
            set(proportional(number, range(len(sources)), range(len(outputs))))
            for number in range(len(sources))
        ]
    return Alignment(sources, outputs, linked)


def proportional(number: int, sources: range, outputs: range) -> list[int]:
    """Returns the output unit at the same part of a range as a source unit; none where there are none."""
    part = (number - sources.start + 0.5) / len(sources)
    return [outputs[int(part * len(outputs))]] if outputs else []


def _core(text: str, word: tuple[int, int]) -> tuple[int, int]:
    """Returns where a word begins and ends without punctuation; all of it where it is nothing else."""
    start, end = word
    letters = [place for place in range(start, end) if _is_letter(text[place])]
    return (letters[0], letters[-1] + 1) if letters else word


def _is_letter(character: str) -> bool:
    return not category(character).startswith("P")


def _edges(text: str, word: tuple[int, int]) -> set[int]:
    return {*word, *_core(text, word)}


def _across(text: str, word: tuple[int, int], cut: int, output: str, other: tuple[int, int]) -> int | None:
    """Returns the place in a word's translation that corresponds to one in the word; `None` is unknown."""
    (start, end), (first, last) = word, other
    edges = dict(zip(word, other, strict=True))
    if any(map(_is_letter, text[start:end])):
        edges |= dict(zip(_core(text, word), _core(output, other), strict=True))
    before, after, translation = text[start:cut], text[cut:end], output[first:last]
    if text[start:end] == translation:
        return first + cut - start
    if cut in edges:
        return edges[cut]
    if translation.startswith(before):
        return first + len(before)
    if translation.endswith(after):
        return last - len(after)
    return None


def _units(cuts: Sequence[set[int]]) -> list[Unit]:
    return [Unit(*pair, number) for number, places in enumerate(cuts) for pair in pairwise(sorted(places))]


def _by_word(units: Sequence[Unit]) -> defaultdict[int, list[int]]:
    numbers: defaultdict[int, list[int]] = defaultdict(list)
    for number, unit in enumerate(units):
        numbers[unit.word].append(number)
    return numbers
