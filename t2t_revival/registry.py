"""Names of problems, hparams sets and factors of the learning rate, as in T2T's `utils/registry.py`.

    @registry.register_problem
    class TranslateEnde(Text2TextProblem): ...      # registry.problem("translate_ende")

    @registry.register_hparams
    def base() -> HParams: ...                      # registry.hparams("base")

    @registry.register_schedule_factor
    def halving(step, hparams): ...                 # --hparams="learning_rate_schedule=constant*halving"

A name is the class or function name in snake_case. The built-in ones are registered when their package is
imported, at the first look-up.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from t2t_revival import t2t_names
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.utils.files import is_file_name
from t2t_revival.utils.source_code import place_of

if TYPE_CHECKING:
    from t2t_revival.hparams.hparams import HParams
    from t2t_revival.problems.problem import Problem

    ProblemType = TypeVar("ProblemType", bound=type[Problem])

REVERSED = "_rev"  # suffix of a problem in the other direction, as in T2T
HParamsFunction = TypeVar("HParamsFunction", bound="Callable[[], HParams]")
ScheduleFactor = Callable[[Any, "HParams"], Any]

_PROBLEMS: dict[str, type[Problem]] = {}
_HPARAMS: dict[str, Callable[[], HParams]] = {}
_SCHEDULE_FACTORS: dict[str, ScheduleFactor] = {}
_PACKAGES: dict[str, Path] = {}  # folders of imported users' packages, by name
PORTING = (
    "tensor2tensor's names are in t2t_revival: registry, HParams, Text2TextProblem; "
    "see docs/from_tensor2tensor.md"
)


def snake_case(name: str) -> str:
    """Converts a class name: `TranslateEnde` -> `translate_ende`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def register_problem(cls: ProblemType) -> ProblemType:
    """Class decorator: registers a `Problem` under its class name in snake_case.

    Raises:
        T2TError: another class has this name.
    """
    _add(_PROBLEMS, snake_case(cls.__name__), cls, "problem")
    return cls


def register_hparams(function: HParamsFunction) -> HParamsFunction:
    """Function decorator: registers a function that returns `HParams` under its name.

    Raises:
        T2TError: another function has this name.
    """
    _add(_HPARAMS, function.__name__, function, "hparams set")
    return function


def register_schedule_factor(function: ScheduleFactor) -> ScheduleFactor:
    """Function decorator: registers a factor of `HParams.learning_rate_schedule` under the function's name.

    The function is called with the number of the update, a float32 tensor counted from 1, and the
    hyperparameters. It returns a number or a tensor of the step's shape, computed by `keras.ops`, so that it
    runs inside the training graph of any backend.

    Raises:
        T2TError: another function has this name.
    """
    _add(_SCHEDULE_FACTORS, function.__name__, function, "schedule factor")
    return function


def _add(table: dict, name: str, entry: Callable, kind: str) -> None:
    if not is_file_name(name):
        raise T2TError(f"{kind} {name!r}: not a valid name: it becomes part of file names; rename it")
    if name in table and table[name].__module__ != entry.__module__:  # equal: a module is loaded again
        places = f"{place_of(table[name])} and {place_of(entry)}"
        raise T2TError(f"{kind} {name!r} is registered twice: {places}; rename one of them")
    table[name] = entry


def _package(entry: object) -> str:
    return entry.__module__.partition(".")[0]


def _built_in(module: str) -> ModuleType:
    """Imports a module that registers built-in names; at a look-up, since it imports this module."""
    return importlib.import_module(f"t2t_revival.{module}")


def problem(name: str, **settings: Any) -> Problem:
    """Returns the problem of that name, built with `settings` (such as `data_source="sample"`).

    `NAME_rev` is the problem NAME with inputs and targets swapped; see `Problem.reversed`.

    Raises:
        T2TError: there is no such problem (names similar ones), it has no such setting, or it cannot be
            reversed.
    """
    _built_in("problems")
    base = name.removesuffix(REVERSED) if name not in _PROBLEMS else name
    if base not in _PROBLEMS:
        known = list_problems()
        if (mirrored := _mirrored(name)) in known:
            raise T2TError(f"unknown problem {name!r}; did you mean {mirrored}?")
        raise T2TError(t2t_names.explain_problem(name) or _unknown(name, known, "problem"))
    cls = _PROBLEMS[base]
    made = cls(**settings)
    return made if base == name else made.reversed()


def _mirrored(name: str) -> str:
    """Returns the other name of a direction, such as `translate_enfr_rev` for `translate_fren`."""
    match = re.fullmatch(rf"(.*_)([a-z]{{2}})_?([a-z]{{2}})({REVERSED})?", name)
    if not match:
        return name
    prefix, source, target, was_reversed = match.groups()
    return f"{prefix}{target}{source}{'' if was_reversed else REVERSED}"


def hparams(name: str, overrides: str = "") -> HParams:
    """Returns the hparams set of that name, with `overrides` such as "batch_size=2048,num_heads=4".

    Raises:
        T2TError: there is no such set, or an override is invalid.
    """
    _built_in("hparams")
    if name not in _HPARAMS:
        raise T2TError(t2t_names.explain_hparams(name) or _unknown(name, _HPARAMS, "hparams set"))
    return _HPARAMS[name]().override(overrides)


def schedule_factors(schedule: str) -> list[ScheduleFactor]:
    """Returns the factors of a `learning_rate_schedule`, such as "constant*linear_warmup".

    Raises:
        T2TError: one of them is unknown (names similar ones).
    """
    _built_in("training.schedule_factors")
    names = [name.strip() for name in schedule.split("*")]
    for name in names:
        if name not in _SCHEDULE_FACTORS:
            raise T2TError(_unknown(name, _SCHEDULE_FACTORS, "factor of learning_rate_schedule"))
    return [_SCHEDULE_FACTORS[name] for name in names]


def _unknown(name: str, table: Mapping[str, object], kind: str) -> str:
    """Returns the message for an unknown name, with a possible reason."""
    message = did_you_mean(name, table, kind)
    if not _PACKAGES:
        return f"{message} (one of your own needs --t2t_usr_dir)"
    tables = (_PROBLEMS, _HPARAMS, _SCHEDULE_FACTORS)
    registering = {_package(entry) for table in tables for entry in table.values()}
    if idle := [str(folder) for package, folder in _PACKAGES.items() if package not in registering]:
        return f"{message} ({idle[0]} registers nothing: its __init__.py must import the modules that do)"
    return message


def list_problems() -> dict[str, str]:
    """Returns the names of all problems and their reverses, sorted, each with its docstring's first line."""
    _built_in("problems")
    reversed_problems = {
        f"{name}{REVERSED}": f"{name} with inputs and targets swapped, on the same data."
        for name, cls in _PROBLEMS.items()
        if not cls.one_way()
    }
    return dict(sorted({**reversed_problems, **_summaries(_PROBLEMS)}.items()))


def list_hparams() -> dict[str, str]:
    """Returns the names of all hparams sets, sorted, each with its docstring's first line."""
    _built_in("hparams")
    return _summaries(_HPARAMS)


def list_schedule_factors() -> dict[str, str]:
    """Returns the names of all factors of the learning rate, sorted, each with its docstring's first line."""
    _built_in("training.schedule_factors")
    return _summaries(_SCHEDULE_FACTORS)


def _summaries(table: dict) -> dict[str, str]:
    return {name: (table[name].__doc__ or "").strip().split("\n")[0] for name in sorted(table)}


def import_usr_dir(usr_dir: str) -> None:
    """Imports a user's package, so that its registrations run (T2T's `--t2t_usr_dir`); once per process.

    No other function runs code outside this package.

    Raises:
        T2TError: the folder is missing, is not a package or has the name of another module, or a module that
            it imports is missing. Other errors of its code are raised as they are.
    """
    folder = Path(usr_dir).expanduser().resolve()
    if _PACKAGES.get(folder.name) == folder and folder.name in sys.modules:
        return
    _check_package(folder, f"--t2t_usr_dir={usr_dir}")
    spec = importlib.util.spec_from_file_location(folder.name, folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[folder.name] = module
    _PACKAGES[folder.name] = folder
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[folder.name], _PACKAGES[folder.name]
        if isinstance(error, ModuleNotFoundError):
            hint = f"; {PORTING}" if (error.name or "").partition(".")[0] == "tensor2tensor" else ""
            raise T2TError(f"--t2t_usr_dir={usr_dir}: {error}{hint}") from error
        raise


def _check_package(folder: Path, flag: str) -> None:
    """Checks that a folder is a package that hides no other module."""
    if not folder.exists():
        raise T2TError(f"{flag}: no such folder ({folder})")
    if not folder.is_dir():
        raise T2TError(f"{flag}: not a folder but a file; give its folder: {folder.parent}")
    if not (folder / "__init__.py").is_file():
        raise T2TError(f"{flag}: no __init__.py there; the folder must be a Python package")
    if "." in folder.name:
        raise T2TError(f"{flag}: a package's name cannot have a dot; rename the folder")
    loaded = sys.modules.get(folder.name)
    spec = getattr(loaded, "__spec__", None) if loaded else importlib.util.find_spec(folder.name)
    origin = spec.origin if spec else None
    if (loaded or origin) and Path(origin or "").resolve() != (folder / "__init__.py").resolve():
        raise T2TError(f"{flag}: {folder.name!r} is already the name of another module; rename the folder")


def usr_dir(package: str) -> str | None:
    """Returns the folder of an imported user's package; `None` if there is none of that name."""
    folder = _PACKAGES.get(package)
    return str(folder) if folder else None


def usr_dir_of(problem: str) -> str | None:
    """Returns the folder of the user's package that registers a problem; `None` for built-in ones."""
    entry = _PROBLEMS.get(problem) or _PROBLEMS.get(problem.removesuffix(REVERSED))
    return usr_dir(_package(entry)) if entry else None
