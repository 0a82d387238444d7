"""Answers of a request, put together from rows of several batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2t_revival.serving.signatures import NO_OUTPUT, Inputs

OUTPUTS, ALTERNATIVES, TOKENS, SOURCE = "n", "alternatives", "tokens", "source_tokens"  # axes
LENGTH = "length"  # axis of the longest output
LAYOUT: dict[str, tuple[tuple[str, ...], Any]] = {  # axes of a row of each output, and its padding
    "outputs": ((OUTPUTS,), b""),
    "scores": ((OUTPUTS,), NO_OUTPUT),
    "cut": ((OUTPUTS,), False),
    "ids": ((OUTPUTS, LENGTH), 0),
    "tokens": ((TOKENS,), b""),
    "token_log_probs": ((TOKENS,), 0.0),
    "token_ends": ((TOKENS,), 0),
    "alternatives": ((TOKENS, ALTERNATIVES), b""),
    "alternative_log_probs": ((TOKENS, ALTERNATIVES), 0.0),
    "source_tokens": ((SOURCE,), b""),
    "source_token_ends": ((SOURCE,), 0),
    "attention": ((TOKENS, SOURCE), 0.0),
}
Columns = dict[str, list[Any]]  # outputs by name, a row for each line


def answer_of(rows: Sequence[Mapping[str, Any]], columns: Inputs) -> Columns:
    """Returns the outputs of a request as it would get them alone.

    The rows of a batch are as wide as its widest, and a request may have rows of several batches: those that
    are longer than the request's widest are cut, and shorter ones padded.

    Args:
        rows: outputs of each line by name.
        columns: the request's inputs.
    """
    lengths = [_lengths(row) for row in rows]
    widths = {axis: max(each[axis] for each in lengths) for axis in lengths[0]}
    widths |= {axis: max(columns[axis]) for axis in (OUTPUTS, ALTERNATIVES) if axis in columns}
    answer: Columns = {}
    for name in rows[0]:
        axes, padding = LAYOUT.get(name, ((), None))
        own = [[each.get(axis, widths[axis]) for axis in axes] for each in lengths]
        wanted = [widths[axis] for axis in axes]
        answer[name] = [_fit(row[name], each, wanted, padding) for row, each in zip(rows, own, strict=True)]
    return answer


def _lengths(row: Mapping[str, Any]) -> dict[str, int]:
    """Returns how long a row is, without its padding, along the axes that it tells."""
    names = {axis: row[axis] for axis in (TOKENS, SOURCE) if axis in row}
    found = {axis: sum(map(bool, tokens)) for axis, tokens in names.items()}
    if "ids" in row:
        found[LENGTH] = max(sum(map(bool, ids)) for ids in row["ids"])
    return found | {OUTPUTS: len(row["outputs"])} if "outputs" in row else found


def _fit(value: Any, lengths: Sequence[int], widths: Sequence[int], padding: Any) -> Any:
    if not widths:
        return value
    kept = [_fit(each, lengths[1:], widths[1:], padding) for each in value[: min(lengths[0], widths[0])]]
    return kept + [_padding(widths[1:], padding)] * (widths[0] - len(kept))


def _padding(widths: Sequence[int], padding: Any) -> Any:
    return [_padding(widths[1:], padding)] * widths[0] if widths else padding
