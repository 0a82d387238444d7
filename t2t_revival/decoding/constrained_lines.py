"""Lines with lexical constraints in a call of `Translator.nbest`: checks, search, and what is missing."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from t2t_revival.decoding.engine import Engine, Inputs, SearchSettings, max_output_length
from t2t_revival.decoding.lexical_constraints import LineConstraints, count, fit
from t2t_revival.decoding.lexical_tables import LexicalTables, LineAutomata, Unit, tables_of
from t2t_revival.decoding.outputs import Translation
from t2t_revival.decoding.phrases import AT_ONCE, Form, Spelling
from t2t_revival.decoding.preprocessor import LINE_ENDS, Preprocessor, pad
from t2t_revival.errors import LineError, T2TError
from t2t_revival.utils.blank import is_blank

ATTEMPTS = 5  # of searches for an output without the avoided phrases
Found = tuple[list[list[int]], list[float]]
Hypotheses = tuple[int, list[list[int]], list[float]]  # index of a line; ids and scores of its outputs


@dataclass(frozen=True)
class _Line:
    """A line with constraints: its source ids, its automata and the maximum length of its output."""

    constraints: LineConstraints
    ids: list[int]
    automata: LineAutomata
    room: int


class Attempt(NamedTuple):
    """A search for the outputs of some lines.

    Attributes:
        indices: of the lines.
        ids: tokens of their sources.
        tables: of their phrases.
    """

    indices: list[int]
    ids: list[list[int]]
    tables: LexicalTables


class ConstrainedLines:
    """The lines of a call that have constraints.

    Args:
        engine: finds outputs; `None` if no line has constraints, or if others answer `searches`.
        preprocessor: of the call.
        spelling: of phrases. `None` is that of the engine.
    """

    def __init__(
        self, engine: Engine | None, preprocessor: Preprocessor, spelling: Spelling | None = None
    ) -> None:
        self._engine, self._preprocessor = engine, preprocessor
        self._own_spelling = spelling
        self._options, self._first_line = preprocessor.options, preprocessor.first_line
        self._lines: dict[int, _Line] = {}
        self._blank: dict[int, LineConstraints] = {}

    def add(self, index: int, constraints: LineConstraints, text: str, ids: list[int]) -> None:
        """Adds a line.

        Args:
            index: of the line.
            constraints: of its output.
            text: the model's input.
            ids: its tokens.

        Raises:
            LineError: the constraints contradict each other, the vocabulary cannot spell a phrase, or one is
                longer than the output may be.
        """
        constraints = checked(constraints, self._first_line + index)
        try:
            if is_blank(text):
                self._blank[index] = constraints
                return
            options = self._options
            room = max_output_length(len(ids), 0, options.extra_length, options.max_length_ratio)
            self._lines[index] = _Line(constraints, ids, fit(constraints, self._spelling, room), room)
        except T2TError as error:
            raise LineError(self._first_line + index, str(error)) from error

    @property
    def _spelling(self) -> Spelling:
        spelling = self._engine.spelling if self._engine else self._own_spelling
        assert spelling
        return spelling

    @property
    def constraints(self) -> dict[int, LineConstraints]:
        """The constraints of the lines that are not blank, by index."""
        return {index: line.constraints for index, line in self._lines.items()}

    def __contains__(self, index: int) -> bool:
        return index in self._lines

    def again(
        self, constraints: Mapping[int, LineConstraints], inputs: Sequence[str], n: int
    ) -> Iterator[Hypotheses]:
        """Yields what `search` does of lines with other constraints, but not of those that cannot have them.

        Args:
            constraints: by index of the line.
            inputs: the model's inputs.
            n: number of outputs.
        """
        lines = ConstrainedLines(self._engine, self._preprocessor)
        for index, one in constraints.items():
            with suppress(LineError):
                lines.add(index, one, inputs[index], self._lines[index].ids)
        yield from lines.search([*constraints], n)

    def search(self, indices: Sequence[int], n: int) -> Iterator[Hypotheses]:
        """Yields index, ids and scores of the n best outputs of lines with constraints."""
        searches = self.searches(indices)
        try:
            attempt = next(searches)
            while True:
                attempt = searches.send(self._find(attempt, n))
        except StopIteration as end:
            yield from end.value

    def searches(self, indices: Sequence[int]) -> Generator[Attempt, dict[int, Found], list[Hypotheses]]:
        """Yields searches, is sent ids and scores of the n best outputs of each line, by its index.

        The first search is of all lines with constraints; the others are stricter, of lines whose outputs
        have avoided phrases.

        Returns:
            Index, ids and scores of each of these lines.
        """
        indices = [index for index in indices if index in self]
        pending = {index: self._lines[index].automata for index in indices}
        found: dict[int, Found] = {}
        for _ in range(ATTEMPTS):
            if not pending:
                break
            rooms = [self._lines[index].room for index in pending]
            ids = [self._lines[index].ids for index in pending]
            latest = yield Attempt([*pending], ids, tables_of([*pending.values()], rooms))
            found |= {i: one for i, one in latest.items() if one[1][0] > -np.inf or i not in found}
            again = {
                index: stricter(line.units, *latest[index], self._spelling) for index, line in pending.items()
            }
            pending = {
                index: LineAutomata(units, self._spelling)
                for index, units in again.items()
                if units is not None
            }
        return [(index, *found[index]) for index in indices]

    def mark(self, index: int, outputs: list[Translation]) -> list[Translation]:
        """Returns the outputs of a line with the phrases that they lack or should not have."""
        line = self._lines.get(index)
        constraints = line.constraints if line else self._blank.get(index)
        if constraints is None:
            return outputs
        return [
            replace(one, missing=constraints.missing(one.text), present=constraints.present(one.text))
            for one in outputs
        ]

    def _find(self, attempt: Attempt, n: int) -> dict[int, Found]:
        assert self._engine
        settings = SearchSettings.of(self._options, n)
        ids, scores = self._engine.search(Inputs(pad(attempt.ids), settings, tables=attempt.tables))
        pairs = zip(np.asarray(ids).tolist(), np.asarray(scores).tolist(), strict=True)
        return dict(zip(attempt.indices, pairs, strict=True))


def checked(constraints: LineConstraints, number: int) -> LineConstraints:
    """Returns the constraints of a line, by its number, without line ends and spaces around phrases.

    Raises:
        LineError: a phrase is empty, or has an avoided one.
    """

    def cleaned(phrases: Iterable[str]) -> tuple[str, ...]:
        return tuple(phrase.translate(LINE_ENDS).strip() for phrase in phrases)

    phrases = cleaned(term.phrase for term in constraints.terms)
    terms = (one._replace(phrase=phrase) for one, phrase in zip(constraints.terms, phrases, strict=True))
    constraints = LineConstraints(cleaned(constraints.phrases), cleaned(constraints.avoid), tuple(terms))
    try:
        constraints.check()
    except T2TError as error:
        raise LineError(number, str(error)) from error
    return constraints


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


def constrained_lines(
    engine: Engine,
    preprocessor: Preprocessor,
    constraints: Sequence[LineConstraints | None] | None,
    inputs: Sequence[str],
    source_ids: Sequence[list[int]],
) -> ConstrainedLines:
    """Returns the lines of a call that have constraints.

    Args:
        engine: finds outputs.
        preprocessor: of the call.
        constraints: one for each line, or `None` for none at all.
        inputs: the model's inputs.
        source_ids: their tokens.

    Raises:
        T2TError: the engine cannot search for phrases; or as `ConstrainedLines.add`.
    """
    if not constraints:
        return ConstrainedLines(None, preprocessor)
    _ = engine.spelling  # or else the error that it has none, of no line
    lines = ConstrainedLines(engine, preprocessor)
    for index, (one, text, ids) in enumerate(zip(constraints, inputs, source_ids, strict=True)):
        if one:
            lines.add(index, one, text, ids)
    return lines
