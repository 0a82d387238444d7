"""Terminology: terms of the source and what they must become in the output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from t2t_revival.addons.lexical.constraints import LineConstraints, Term, is_inside
from t2t_revival.errors import T2TError
from t2t_revival.utils.unicode_forms import composed, normalized

COMMENT = "#"
SPACES = re.compile(r"\s+")  # of a source between words of a term: a no-break space, or several


class Terminology:
    """A list of terms with their translations.

    A term in lower case stands for itself in any case, any other term for what is written; accents may be
    composed or decomposed (Unicode's NFC and NFD) on both sides. The longest terms
    are found first, as whole words that do not overlap. Where the source begins a term with a capital that
    the term itself has not, the translation begins with one too.

    Args:
        terms: translations by term.

    Raises:
        T2TError: the terms are no dictionary of strings.

    Example:
        terms = Terminology({"hot dog": "Hotdog", "dog": "hund"})
        terms.constraints("Dog eats hot dog").phrases    # ("Hund", "Hotdog")
    """

    def __init__(self, terms: Mapping[str, str]) -> None:
        if not isinstance(terms, Mapping) or {type(side) for pair in terms.items() for side in pair} - {str}:
            raise T2TError('terms must be a dictionary of strings, such as {"dog": "Hund"}')
        self._terms = {SPACES.sub(" ", normalized(term)): target for term, target in terms.items()}
        self._longest = max(map(len, self._terms), default=0)

    @classmethod
    def parse(cls, lines: Sequence[str], name: str) -> Terminology:
        """Parses lines of source term, tab, target term; blank lines and those that begin with # are skipped.

        Args:
            lines: of a file.
            name: of the file, for errors.

        Raises:
            T2TError: a line has not two sides, or a term has two translations.
        """
        terms: dict[str, str] = {}
        numbers: dict[str, int] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.startswith(COMMENT):
                continue
            term, target = _sides(line, f"{name}, line {number}")
            if terms.setdefault(term, target) != target:
                raise T2TError(
                    f"{name}, line {number}: line {numbers[term]} translates {term!r} otherwise: keep one"
                )
            numbers.setdefault(term, number)
        return cls(terms)

    def with_terms(self, terms: Mapping[str, str]) -> Terminology:
        """Returns this terminology with further terms, which replace equal ones."""
        return Terminology(self._terms | dict(terms)) if terms else self

    def constraints(self, line: str) -> LineConstraints:
        """Returns the constraints that are the translations of a line's terms, in its order."""
        text, places = composed(line)
        kept = [n for n, one in enumerate(text) if not (one.isspace() and text[n - 1 : n].isspace())]
        source = SPACES.sub(" ", text)
        found: list[tuple[int, int]] = []
        taken = bytearray(len(source))
        for begin, end in sorted(self._places(source), key=lambda span: (span[0] - span[1], span[0])):
            if not any(taken[begin:end]):
                found.append((begin, end))
                taken[begin:end] = b"\1" * (end - begin)
        terms = []
        for begin, end in sorted(found):
            first, last = places[kept[begin]], places[kept[end - 1] + 1]
            terms.append(Term(line[first:last], self._translate(source[begin:end]), first))
        return LineConstraints(tuple(term.phrase for term in terms), terms=tuple(terms))

    def _places(self, source: str) -> Iterator[tuple[int, int]]:
        """Yields the beginnings and ends of all terms of a source, which may overlap."""
        limits = [place for place in range(len(source) + 1) if not is_inside(source, place)]
        for number, begin in enumerate(limits):
            for following in range(number + 1, len(limits)):
                end = limits[following]
                if end > begin + self._longest:
                    break
                if self._translate(source[begin:end]):
                    yield begin, end

    def _translate(self, text: str) -> str:
        """Returns the translation of a text that is a term, else ""."""
        if text in self._terms:
            return self._terms[text]
        term = text.lower()
        if term not in self._terms:
            return ""
        target = self._terms[term]
        return target[0].upper() + target[1:] if text[0] != term[0] else target


def _sides(line: str, place: str) -> tuple[str, str]:
    """Returns the two terms of a line."""
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) != 2 or not all(columns):
        raise T2TError(f"{place}: {line!r} is not two terms: write source term TAB target term")
    return SPACES.sub(" ", normalized(columns[0])), columns[1]
