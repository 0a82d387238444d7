"""`put_back`: the marks of a line in its translation, with the white space that they had around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from t2t_revival.addons.markup.layout import lay_out
from t2t_revival.addons.markup.patterns import CLOSE, OPEN
from t2t_revival.addons.markup.plain import CLOSING, OPENING, Mark, Plain
from t2t_revival.addons.markup.units import Links, align_units
from t2t_revival.utils.texts import is_blank

Placed = tuple[int, int]  # offset in the output, and number of a mark


def put_back(plain: Plain, output: str, links: Links) -> str:
    """Returns a translation with the markup of its source.

    The tags of an element go around the words that are linked with its own. Any other mark goes beside the
    word that is linked with the one before it, else with the one after it. Each stays in the element that it
    was in.

    Args:
        plain: the source without its markup.
        output: translation of its text.
        links: word alignment, as numbers of a source word and an output word, both between spaces.
            Without any, marks are placed by proportion.
    """
    if is_blank(plain.text):
        return plain.line if plain.marks else ""
    alignment = align_units(plain.text, (mark.place for mark in plain.marks), output, links)
    pieces, position = [], 0
    for run in _runs(lay_out(plain.marks, output, alignment), output):
        start = len(output[: run[0][0]].rstrip())
        end = len(output) - len(output[run[-1][0] :].lstrip())
        pieces += [_written(output[position:start], plain), _joined(plain.marks, run, output, start, end)]
        position = end
    return "".join([*pieces, _written(output[position:], plain)])


def _written(text: str, plain: Plain) -> str:
    return escape(text, quote=False) if plain.escaped else text


def _runs(placed: Sequence[Placed], output: str) -> Iterator[list[Placed]]:
    """Yields marks with nothing but white space between."""
    run: list[Placed] = []
    for offset, number in placed:
        if run and output[run[-1][0] : offset].strip():
            yield run
            run = []
        run.append((offset, number))
    if run:
        yield run


def _joined(marks: Sequence[Mark], run: Sequence[Placed], output: str, start: int, end: int) -> str:
    """Returns a run of marks with the white space around them.

    The output's own white space stays where it is, unless it is where the source had none, and there is some
    on another side of a mark, or a mark that separates words.
    """
    left, right = output[:start], output[end:]
    numbers = [number for _, number in run]
    pairs = list(zip([None, *numbers], [*numbers, None], strict=True))
    gaps = [" " * _is_spaced(marks, pair, left, right) for pair in pairs]
    own = sum(offset <= start for offset, _ in run)
    rest = [*gaps[:own], *gaps[own + 1 :]]
    breaks = any(marks[one].breaks and marks[one].glued_left and marks[one].glued_right for one in numbers)
    if output[start:end]:
        is_moved = (any(rest) or breaks) and _is_glued(marks, pairs[own])
        gaps[own] = "" if is_moved else output[start:end]
    texts = [*(marks[number].text for number in numbers), ""]
    return "".join(gap + text for gap, text in zip(gaps, texts, strict=True))


def _is_spaced(marks: Sequence[Mark], pair: tuple[int | None, int | None], left: str, right: str) -> bool:
    """Checks whether the source asks for white space between two marks, of which one may be text instead."""
    one, other = pair
    before, after = (None if number is None else marks[number] for number in pair)
    if before is None:
        assert after is not None
        if after.shape == CLOSE:
            return bool(left) and after.before
        return bool(left) and _left_of(after) and (after.before or not OPENING.search(left))
    if after is None:
        if before.shape == OPEN:
            return bool(right) and before.after
        return bool(right) and _right_of(before) and not CLOSING.match(right)
    if before.shape == OPEN:
        return before.after
    if after.shape == CLOSE:
        return after.before
    if before.shape == CLOSE and after.shape == OPEN:
        return False
    if one is not None and other == one + 1 and after.follows:
        return after.before
    return _right_of(before) or _left_of(after)


def _left_of(mark: Mark) -> bool:
    return mark.shape not in (OPEN, CLOSE) and not mark.glued_left


def _right_of(mark: Mark) -> bool:
    return mark.shape not in (OPEN, CLOSE) and not mark.glued_right


def _is_glued(marks: Sequence[Mark], pair: tuple[int | None, int | None]) -> bool:
    """Checks whether the source had no white space behind the first or before the second mark."""
    before, after = (None if number is None else marks[number] for number in pair)
    behind = before is not None and (not before.after if before.shape == OPEN else before.glued_right)
    ahead = after is not None and (not after.before if after.shape == CLOSE else after.glued_left)
    return behind or ahead
