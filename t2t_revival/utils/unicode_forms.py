"""Unicode's normalization forms (UAX 15): NFC composes a letter with its marks, NFD takes them apart."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Literal
from unicodedata import is_normalized, normalize

FORMS = NFC, NFD = "nfc", "nfd"
NAMES: dict[str, Literal["NFC", "NFD"]] = {NFC: "NFC", NFD: "NFD"}
MIXED = "mixed"
MAJORITY = 0.95  # of the lines that are not in both forms, from which one form is that of the text


def normalized(text: str, form: str = NFC) -> str:
    """Returns a text in a form; "" leaves it as it is."""
    return normalize(NAMES[form], text) if form and not text.isascii() else text


def form_of(line: str) -> str:
    """Returns the form of a line: one of `FORMS`, `MIXED` if it is in neither, "" if it is in both."""
    if line.isascii():
        return ""
    composed, decomposed = (is_normalized(NAMES[form], line) for form in FORMS)
    if composed and decomposed:
        return ""
    return NFC if composed else NFD if decomposed else MIXED


def main_form(lines: Mapping[str, int]) -> str:
    """Returns the form of a text, given the numbers of its lines by `form_of`; "" if it has several."""
    total = sum(number for form, number in lines.items() if form)
    return next((form for form in FORMS if lines.get(form, 0) >= MAJORITY * total), "")


def mixed_note(lines: Mapping[str, int]) -> str:
    """Describes for people a text that is not in NFC, given as to `main_form`; "" of any other."""
    if main_form(lines) == NFC:
        return ""
    counts = ", ".join(f"{lines.get(form, 0):,} lines {form}" for form in (*FORMS, MIXED))
    return f"Unicode forms are {counts}; t2t-datagen --normalize=nfc --overwrite brings all into one"


def not_in(form: str, lines: Iterable[str]) -> list[str]:
    return [line for line in lines if form_of(line) not in ("", form)]


def composed(text: str) -> tuple[str, Sequence[int]]:
    """Returns a text in NFC, and the place in the text of each of its characters, and of its end."""
    found = normalized(text)
    if found == text:
        return text, range(len(text) + 1)
    ends = _decomposed_ends(text)
    return found, [bisect_left(ends, end) for end in _decomposed_ends(found)]


def _decomposed_ends(text: str) -> list[int]:
    """Returns the length of the decomposition before each character, and at the end."""
    return [*accumulate((len(normalize("NFD", each)) for each in text), initial=0)]
