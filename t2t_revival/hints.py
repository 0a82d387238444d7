"""Command lines of this project, for messages that propose the next command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival import registry

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem


def command_line(program: str, **flags: object) -> str:
    """Formats a command to be pasted into a shell, in the folder of the command that prints it.

    Args:
        program: such as "t2t-trainer".
        **flags: values by name, in the order in which they are printed. A flag is left out where its value is
            None, False, "" or an empty list. It has no value where that is True, and commas between the items
            of a list.

    Example:
        command_line("t2t-datagen", problem="translate_ende", data_dir="my data")
        # t2t-datagen --problem=translate_ende --data_dir='my data'
    """
    shown = [
        f"--{name}{_value(value)}" for name, value in flags.items() if value or type(value) in (int, float)
    ]
    return " ".join([program, *shown])


def datagen_command(
    problem: Problem, data_dir: Path, vocab_file: Path | Sequence[Path] = (), *, source: str | None = None
) -> str:
    """Formats the command that generates a problem's data; FOLDER is a source that only the user knows.

    `vocab_file` is the vocabulary of the model that reads the data, or the files of both, in the order of the
    data; without one, it is left to the problem. `source` is the one to take, where the problem names none.
    """
    default = "" if problem.default_source == "wmt14" and not problem.tfds_default else problem.default_source
    config = problem.config
    if not config.data_source:
        config = config.replace(data_source=source or ("" if default else "FOLDER"))
    if vocab_file:
        config = config.replace(
            vocab_size=0, vocab_file=vocab_file, update_vocab=False, separate_vocabularies=None
        )
    usr_dir = registry.usr_dir_of(problem.name)
    return command_line(
        "t2t-datagen", problem=problem.name, data_dir=data_dir, **config.flags(), t2t_usr_dir=usr_dir
    )


def remake_command(problem: str, data_dir: Path) -> str:
    """Formats the command that generates missing or corrupt files of data whose metadata is valid."""
    usr_dir = registry.usr_dir_of(problem)
    return command_line("t2t-datagen", problem=problem, data_dir=data_dir, t2t_usr_dir=usr_dir)


def _value(value: object) -> str:
    if value is True:
        return ""
    if isinstance(value, Iterable) and not isinstance(value, str):
        value = ",".join(map(str, value))
    return f"={shlex.quote(str(value))}"
