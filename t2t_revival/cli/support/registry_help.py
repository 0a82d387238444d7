"""Answers to `--registry_help`: all that is registered, or with `--hparams_set` the fields of one set."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import asdict

from t2t_revival import registry
from t2t_revival.cli.support.parser import HELP_WIDTH
from t2t_revival.hparams.hparams import HParams, meanings

BASE = "base"  # the paper's model, with which all sets are compared
COLUMN = 40  # where meanings begin
NO_BREAK = "\N{NO-BREAK SPACE}"


def print_registry(hparams_set: str | None, change: Callable[[HParams], HParams]) -> None:
    """Prints everything registered, or one hparams set; `change` makes it that of a training."""
    if hparams_set:
        print(_describe_set(hparams_set, change(registry.hparams(hparams_set))))
        return
    for title, entries in (
        ("Problems", registry.list_problems()),
        ("Hparams sets", registry.list_hparams()),
        ("Optimizers", registry.list_optimizers()),
        ("Factors of learning_rate_schedule", registry.list_schedule_factors()),
    ):
        print(f"{title}:")
        width = max(map(len, entries))
        for name, summary in entries.items():
            print(f"  {name:{width}}  {summary}".rstrip())


def _describe_set(name: str, changed: HParams) -> str:
    """Describes all fields of a set by group, each with its value and its meaning.

    A value that differs from the named set or from the paper's base model is marked, and has the other value
    in brackets.
    """
    shown = asdict(changed)
    beside = {each: asdict(registry.hparams(each)) for each in (name, BASE)}
    lines = [
        f"{name}: {registry.list_hparams()[name]}",
        "* marks a value that differs from the one in brackets, which is that of the set named there.",
    ]
    for title, fields in meanings().items():
        lines += ["", title]
        for field, meaning in fields.items():
            others = [f"{at}: {found[field]}" for at, found in beside.items() if found[field] != shown[field]]
            lines += _field(f"{field}={shown[field]}", meaning, others)
    return "\n".join(lines)


def _field(assignment: str, meaning: str, others: list[str]) -> list[str]:
    """Formats a field: the meaning beside the value, or below a long value."""
    head = f"{'*' if others else ' '} {assignment}"
    brackets = f" [{'; '.join(others)}]".replace(": ", f":{NO_BREAK}") if others else ""
    above = [] if len(head) < COLUMN - 1 else [head]
    text = textwrap.wrap(
        meaning + brackets,
        HELP_WIDTH,
        initial_indent="".ljust(COLUMN) if above else head.ljust(COLUMN),
        subsequent_indent=" " * COLUMN,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return above + [line.replace(NO_BREAK, " ") for line in text]
