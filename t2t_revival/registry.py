"""Names of problems and hparams sets, as in T2T's `utils/registry.py`.

    @registry.register_problem
    class TranslateEnde(Text2TextProblem): ...      # registry.problem("translate_ende")

    @registry.register_hparams
    def base() -> HParams: ...                      # registry.hparams("base")

A name is the class or function name in snake_case. The built-in ones register themselves when their
package is imported, which happens at the first look-up.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.files import is_file_name

if TYPE_CHECKING:
    from t2t_revival.hparams.hparams import HParams
    from t2t_revival.problems.problem import Problem

    ProblemType = TypeVar("ProblemType", bound=type[Problem])

HParamsFunction = TypeVar("HParamsFunction", bound="Callable[[], HParams]")

_PROBLEMS: dict[str, type[Problem]] = {}
_HPARAMS: dict[str, Callable[[], HParams]] = {}


def snake_case(name: str) -> str:
    """`TranslateEnde` -> `translate_ende`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def register_problem(cls: ProblemType) -> ProblemType:
    """Class decorator: makes a `Problem` known by its class name in snake_case."""
    _add(_PROBLEMS, snake_case(cls.__name__), cls, "problem")
    return cls


def register_hparams(function: HParamsFunction) -> HParamsFunction:
    """Function decorator: makes a function that returns `HParams` known by its name."""
    _add(_HPARAMS, function.__name__, function, "hparams set")
    return function


def _add(table: dict, name: str, entry: Callable, kind: str) -> None:
    if not is_file_name(name):
        raise T2TError(f"{kind} {name!r}: folders and files have its name, and cannot have this one")
    if name in table and table[name].__module__ != entry.__module__:
        raise T2TError(f"{kind} {name!r} is registered twice: {table[name].__module__}, {entry.__module__}")
    table[name] = entry


def problem(name: str, **settings: Any) -> Problem:
    """The problem of that name, built with `settings` (such as `data_source="sample"`).

    Raises:
        T2TError: there is no such problem, and the message names the near ones; or it has no such setting.
    """
    importlib.import_module("t2t_revival.problems")
    if name not in _PROBLEMS:
        raise T2TError(did_you_mean(name, _PROBLEMS, "problem"))
    _check_settings(name, settings)
    return _PROBLEMS[name](**settings)


def _check_settings(name: str, settings: dict[str, Any]) -> None:
    accepted = inspect.signature(_PROBLEMS[name]).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values()):
        return
    if wrong := [setting for setting in settings if setting not in accepted]:
        raise T2TError(f"problem {name} has no {wrong[0]}; it has {', '.join(accepted)}")


def hparams(name: str, overrides: str = "") -> HParams:
    """The hparams set of that name, with `overrides` such as "batch_size=2048,num_heads=4".

    Raises:
        T2TError: there is no such set, or an override is wrong.
    """
    importlib.import_module("t2t_revival.hparams")
    if name not in _HPARAMS:
        raise T2TError(did_you_mean(name, _HPARAMS, "hparams set"))
    return _HPARAMS[name]().override(overrides)


def list_problems() -> dict[str, str]:
    """Names of all problems, sorted, each with its docstring's first line."""
    importlib.import_module("t2t_revival.problems")
    return _summaries(_PROBLEMS)


def list_hparams() -> dict[str, str]:
    """Names of all hparams sets, sorted, each with its docstring's first line."""
    importlib.import_module("t2t_revival.hparams")
    return _summaries(_HPARAMS)


def _summaries(table: dict) -> dict[str, str]:
    return {name: (table[name].__doc__ or "").strip().split("\n")[0] for name in sorted(table)}


def import_usr_dir(usr_dir: str) -> None:
    """Imports a user's package, so that its registrations run (T2T's `--t2t_usr_dir`).

    This runs the user's code: it is the one door through which code outside this package runs.

    Raises:
        T2TError: the folder is missing, has no `__init__.py`, is named as a module that is in use, or
            fails while it is imported.
    """
    folder = Path(usr_dir).expanduser().resolve()
    if not (folder / "__init__.py").is_file():
        raise T2TError(f"--t2t_usr_dir={usr_dir}: no __init__.py there; it must be a Python package")
    same_name = sys.modules.get(folder.name)
    if same_name is not None and getattr(same_name, "__file__", None) != str(folder / "__init__.py"):
        raise T2TError(f"--t2t_usr_dir={usr_dir}: {folder.name!r} is a module in use; rename the folder")
    spec = importlib.util.spec_from_file_location(folder.name, folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[folder.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[folder.name]
        if isinstance(error, T2TError):
            raise
        raise T2TError(f"--t2t_usr_dir={usr_dir}: {type(error).__name__}: {error}") from error
