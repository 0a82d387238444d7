"""Lines for people about what is decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_revival.decoding.addons import Constraints
    from t2t_revival.decoding.outputs import Translation

OnNote = Callable[[str], None]
UNCHECKED = "terms are not checked against their source words: "
NO_HEADS = "the model has no alignment heads; t2t-align --choose_heads chooses some"
OF_ENSEMBLE = "an ensemble has no word alignment"
OF_EXPORT = "the model was exported without alignment heads; t2t-align --choose_heads chooses some"
NO_WORDS = "scripts without spaces have no words to align"


def ignore_note(note: str) -> None:
    """The `on_note` of a caller who wants no lines."""


def note_faulty(repaired: int, cut: int, total: int, on_note: OnNote) -> None:
    """Notes how many outputs were not what the problem asks for and were repaired, and how many were cut.

    The latter reached their greatest length before their end.
    """
    if repaired:
        on_note(f"{repaired:,} of {total:,} outputs were malformed and have been repaired")
    if cut:
        on_note(
            f"warning: {cut:,} of {total:,} outputs were cut at their greatest length: give a larger "
            "extra_length, max_length_ratio or max_length_factor in --decode_hparams"
        )


def note_unmet(line: str, output: Translation, on_note: OnNote) -> None:
    """Notes the phrases that a line's output lacks or should not have, and terms for other words, if any."""
    if output.missing:
        is_blank = not output.text and output.score == 0
        why = "blank, so that its output lacks" if is_blank else "no room for"
        way_out = "" if is_blank else ": give a larger extra_length, max_length_ratio or max_length_factor"
        on_note(f"warning: {line}: {why} {_quoted(output.missing)}{way_out}")
    if output.present:
        on_note(f"warning: {line}: could not avoid {_quoted(output.present)}")
    for source, phrase in output.unaligned:
        on_note(f"warning: {line}: {phrase!r} is in the output, but seems not to translate {source!r}")


def unchecked(constraints: Iterable[Constraints | None], why: str) -> str:
    """Describes for people that terms of lines are not checked; empty if all are, or there are none.

    Args:
        constraints: of all lines.
        why: none can be checked; empty if they are checked.
    """
    terms = [term for one in constraints if one for term in one.terms]
    if not why and not all(term.has_words for term in terms):
        why = NO_WORDS
    return UNCHECKED + why if terms and why else ""


def _quoted(phrases: Sequence[str]) -> str:
    return ", ".join(map(repr, phrases))
