"""Search for outputs with lexical constraints, and stricter searches where it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from t2t_revival.addons.lexical.constraints import LineConstraints, checked, count, fit
from t2t_revival.addons.lexical.phrases import AT_ONCE, Form, Spelling
from t2t_revival.addons.lexical.tables import LineAutomata, Unit, tables_of
from t2t_revival.decoding.addons import Attempt, Found
from t2t_revival.decoding.engine import max_output_length
from t2t_revival.decoding.lines.line_decoder import Request
from t2t_revival.errors import LineError, T2TError
from t2t_revival.utils.texts import is_blank

ATTEMPTS = 5  # of searches for an output without the avoided phrases


@dataclass(frozen=True)
class _Line:
    """An input with constraints: its source ids, its automata and the maximum length of its output."""

    ids: list[int]
    automata: LineAutomata
    room: int


class ConstrainedLines:
    """The inputs of a request that have constraints.

    Args:
        request: its constraints are `checked`.
        ids: tokens of all inputs.
        spelling: of phrases.
        find: returns what a search finds, by index.

    Raises:
        LineError: constraints contradict each other, the vocabulary cannot spell a phrase, or one is longer
            than the output may be.
    """

    def __init__(
        self,
        request: Request,
        ids: Sequence[list[int]],
        spelling: Spelling,
        find: Callable[[Attempt], Awaitable[dict[int, Found]]],
    ) -> None:
        self._request, self._ids, self._spelling, self._find = request, ids, spelling, find
        given = cast("Mapping[int, LineConstraints]", request.constraints)
        self._lines = {
            index: self._line(index, one)
            for index, one in given.items()
            if not is_blank(request.pieces[index].text)
        }

    def _line(self, index: int, constraints: LineConstraints) -> _Line:
        ids, options = self._ids[index], self._request.options
        room = max_output_length(len(ids), 0, options.extra_length, options)
        try:
            return _Line(ids, fit(constraints, self._spelling, room), room)
        except T2TError as error:
            raise LineError(self._request.first_number + index, str(error)) from error

    def __contains__(self, index: int) -> bool:
        return index in self._lines

    async def search(self, indices: Iterable[int]) -> dict[int, Found]:
        """Returns ids and scores of the best outputs of the inputs with constraints, by index."""
        return await self._search({index: self._lines[index] for index in indices if index in self})

    async def search_again(self, constraints: Mapping[int, LineConstraints]) -> dict[int, Found]:
        """Returns what `search` does of inputs with other constraints, if they can have them."""
        lines = {}
        for index, others in constraints.items():
            with suppress(LineError):
                lines[index] = self._line(index, checked(others, self._request.first_number + index))
        return await self._search(lines)

    async def _search(self, lines: Mapping[int, _Line]) -> dict[int, Found]:
        """Searches; then more strictly, for inputs whose outputs have avoided phrases."""
        pending = {index: line.automata for index, line in lines.items()}
        found: dict[int, Found] = {}
        for _ in range(ATTEMPTS):
            if not pending:
                break
            rooms = [lines[index].room for index in pending]
            ids = [lines[index].ids for index in pending]
            latest = await self._find(Attempt([*pending], ids, tables_of([*pending.values()], rooms)))
            found |= {i: one for i, one in latest.items() if one[1][0] > -np.inf or i not in found}
            again = {
                index: stricter(line.units, *latest[index], self._spelling) for index, line in pending.items()
            }
            pending = {
                index: LineAutomata(units, self._spelling)
                for index, units in again.items()
                if units is not None
            }
        return found


def stricter(
    units: Sequence[Unit], rows: Sequence[list[int]], scores: Sequence[float], spelling: Spelling
) -> list[Unit] | None:
    """Returns the phrases of another search; `None` if outputs have no avoided phrase.

    A phrase that was spelled otherwise is avoided in that form too. If nothing is found, the tokens of
    avoided phrases may not begin longer words either; if again nothing is, nothing is avoided.
    """
    required, avoided = [u for u in units if u.required], [u for u in units if not u.required]
    if not avoided:
        return None
    if scores[0] == -np.inf:
        strict = all(form.after == AT_ONCE for unit in avoided for form in unit.forms)
        return required if strict else [*required, *map(_at_once, avoided)]
    decode = spelling.vocabulary.decode
    outputs = [ids for ids, score in zip(rows, scores, strict=True) if score > -np.inf]
    found = [unit for unit in avoided if any(count(unit.phrase, decode(ids)) for ids in outputs)]
    if not found:
        return None
    return [*required, *(_with_forms(unit, outputs, spelling) if unit in found else unit for unit in avoided)]


def _at_once(unit: Unit) -> Unit:
    return replace(
        unit, forms=tuple(replace(form, at_start=None, after_run=False, after=AT_ONCE) for form in unit.forms)
    )


def _with_forms(unit: Unit, outputs: Sequence[list[int]], spelling: Spelling) -> Unit:
    """Adds the forms in which outputs have an avoided phrase."""

    def has(text: str) -> bool:
        return count(unit.phrase, text) > 0

    others = {spelling.other_form(ids, has) for ids in outputs if has(spelling.vocabulary.decode(ids))}
    others -= {form.ids for form in unit.forms if form.at_start is None and not form.after_run}
    if not others:  # the text has another limit of words than the tokens
        return _at_once(unit)
    after = unit.forms[0].after
    return replace(unit, forms=(*unit.forms, *(Form(ids, after=after) for ids in sorted(others))))
