"""Command lines of this project, for messages that say what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival import registry

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem


def command_line(program: str, **flags: object) -> str:
    """A command that works when it is pasted into a shell, from the folder of the command that prints it.

    Args:
        program: such as "t2t-trainer".
        **flags: their values, in the order in which they are printed. A flag is left out where the value is
            None, False, "" or an empty list, stands alone where it is True, and has commas between the items
            of a list.

    Example:
        command_line("t2t-datagen", problem="translate_ende", data_dir="my data")
        # t2t-datagen --problem=translate_ende --data_dir='my data'
    """
    given = [
        f"--{name}{_value(value)}" for name, value in flags.items() if value or type(value) in (int, float)
    ]
    return " ".join([program, *given])


def datagen_command(problem: Problem, data_dir: Path, vocab_file: Path | None = None) -> str:
    """The command that makes a problem's data; FOLDER in it stands for a source that only the user knows.

    Args:
        problem: whose data.
        data_dir: where it goes.
        vocab_file: the vocabulary of a model that the data is for; None: the problem's own choice.
    """
    default = getattr(problem, "default_source", "")
    if default == "wmt14" and not getattr(problem, "tfds_default", ""):
        default = ""
    return command_line(
        "t2t-datagen",
        problem=problem.name,
        data_dir=data_dir,
        data_source=problem.data_source or ("" if default else "FOLDER"),
        vocab_size=None if vocab_file else problem.vocab_size or None,
        vocab_file=vocab_file or problem.vocab_file,
        t2t_usr_dir=registry.usr_dir_of(problem.name),
    )


def remake_command(problem: str, data_dir: Path) -> str:
    """The command that makes again what is missing or damaged of data whose metadata is there."""
    usr_dir = registry.usr_dir_of(problem)
    return command_line("t2t-datagen", problem=problem, data_dir=data_dir, t2t_usr_dir=usr_dir)


def _value(value: object) -> str:
    if value is True:
        return ""
    if isinstance(value, Iterable) and not isinstance(value, str):
        value = ",".join(map(str, value))
    return f"={shlex.quote(str(value))}"
