"""Parsing of a command line, with all of its faults at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from absl import flags

from t2t_revival import t2t_names
from t2t_revival.cli.support import t2t_flags

NUMBER = re.compile(r"-\.?\d")  # a negative number is a value, not a flag


def parse(values: flags.FlagValues, command: str, arguments: list[str]) -> list[str]:
    """Sets the flags of a command line.

    Args:
        values: the command's flags; values of an earlier call are reset.
        command: its name, such as "t2t-trainer".
        arguments: the words behind the name.

    Returns:
        A line for each fault: unknown flags, wrong values, unexpected arguments.
    """
    for flag in values:
        values[flag].unparse()
    values.mark_as_parsed()
    try:
        arguments = values.read_flags_from_files(arguments, force_gnu=False)
    except flags.Error as error:
        return [str(error)]
    unknown: list[str] = []
    faults: list[str] = []
    for name, words in _items(values, arguments):
        if not name:
            faults.append(f"unexpected argument {words[0]!r}")
        elif _flag(values, name) is not None:
            try:
                values([command, *words])
            except (flags.Error, ValueError) as error:
                faults.append(str(error))
        else:
            unknown.append(name)
    known = {flag for flag in values if flag == values[flag].name}
    return (
        t2t_flags.explain_flags(command, unknown, sorted(known))
        + _explain_problem(values) * bool(unknown)
        + faults
    )


def _items(values: flags.FlagValues, arguments: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yields name and words of each flag, its value among them; other arguments have no name."""
    words = list(arguments)
    while words:
        word = words.pop(0)
        name = _name(word)
        flag = _flag(values, name)
        takes_value = bool(name) and "=" not in word and not (flag is not None and flag.boolean)
        is_value = words and (flag is not None or not words[0].startswith("-") or NUMBER.match(words[0]))
        if takes_value and is_value:
            yield name, [word, words.pop(0)]
        elif word == "--":
            yield from (("", [rest]) for rest in words)
            return
        else:
            yield name, [word]


def _name(word: str) -> str:
    """Returns the name of the flag in a word; empty where the word is not a flag."""
    dashes = 2 if word.startswith("--") else 1
    return word[dashes:].partition("=")[0] if word.startswith("-") else ""


def _flag(values: flags.FlagValues, name: str) -> flags.Flag | None:
    if name in values:
        return values[name]
    plain = name.removeprefix("no")
    return values[plain] if plain != name and plain in values and values[plain].boolean else None


def _explain_problem(values: flags.FlagValues) -> list[str]:
    """Explains `--problem` with tensor2tensor's name, which commands that generate data do not accept."""
    makes_data = "data_source" in values and "problem" in values
    name = values["problem"].value if makes_data else None
    explanation = t2t_names.explain_problem(name) if name else None
    return [f"--problem={explanation}"] if explanation else []
