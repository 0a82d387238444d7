"""Names of problems, hparams sets and factors of the learning rate, as in T2T's `utils/registry.py`.

    @registry.register_problem
    class TranslateEnde(Text2TextProblem): ...      # registry.problem("translate_ende")

    @registry.register_hparams
    def base() -> HParams: ...                      # registry.hparams("base")

    @registry.register_schedule_factor
    def halving(step, hparams): ...                 # --hparams="learning_rate_schedule=constant*halving"

A name is the class or function name in snake_case. The built-in ones register themselves when their
package is imported, which happens at the first look-up.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from t2t_revival import t2t_names
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.files import is_file_name

if TYPE_CHECKING:
    from t2t_revival.hparams.hparams import HParams
    from t2t_revival.problems.problem import Problem

    ProblemType = TypeVar("ProblemType", bound=type[Problem])

REVERSED = "_rev"  # ends the name of a problem in the other direction, as in T2T
HParamsFunction = TypeVar("HParamsFunction", bound="Callable[[], HParams]")
ScheduleFactor = Callable[[Any, "HParams"], Any]

_PROBLEMS: dict[str, type[Problem]] = {}
_HPARAMS: dict[str, Callable[[], HParams]] = {}
_SCHEDULE_FACTORS: dict[str, ScheduleFactor] = {}
_PLACES: dict[Callable, str] = {}  # where each was registered: file and line
_PACKAGES: dict[str, Path] = {}  # the user's, by name
_importing = ""  # the package of the user's that is being imported
PORTING = (
    "tensor2tensor's names are in t2t_revival: registry, hparams.HParams, problems.Text2TextProblem; "
    "see docs/from_tensor2tensor.md"
)


def snake_case(name: str) -> str:
    """`TranslateEnde` -> `translate_ende`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def register_problem(cls: ProblemType) -> ProblemType:
    """Class decorator: makes a `Problem` known by its class name in snake_case.

    Raises:
        T2TError: another class has this name.
    """
    if not isinstance(cls, type):
        raise T2TError("register_problem takes a class, which names the problem: @registry.register_problem")
    _add(_PROBLEMS, snake_case(cls.__name__), cls, "problem")
    return cls


def register_hparams(function: HParamsFunction) -> HParamsFunction:
    """Function decorator: makes a function that returns `HParams` known by its name.

    Raises:
        T2TError: another function has this name.
    """
    if not inspect.isroutine(function):
        raise T2TError("register_hparams takes a function, which names the set: @registry.register_hparams")
    _add(_HPARAMS, function.__name__, function, "hparams set")
    return function


def register_schedule_factor(function: ScheduleFactor) -> ScheduleFactor:
    """Function decorator: makes a factor of `HParams.learning_rate_schedule` known by the function's name.

    The function is called with the number of the update, a float32 tensor counted from 1, and the
    hyperparameters. It returns a number or a tensor of the step's shape, by `keras.ops`, so that it runs
    inside the training graph of any backend.

    Raises:
        T2TError: another function has this name, or it does not take (step, hparams).
    """
    if not inspect.isroutine(function):
        raise T2TError("register_schedule_factor takes a function: @registry.register_schedule_factor")
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise T2TError(f"schedule factor {function.__name__!r} must take (step, hparams): {error}") from error
    _add(_SCHEDULE_FACTORS, function.__name__, function, "schedule factor")
    return function


def _add(table: dict, name: str, entry: Callable, kind: str) -> None:
    if not is_file_name(name):
        raise T2TError(f"{kind} {name!r}: folders and files have its name, and cannot have this one")
    place = _place(inspect.currentframe())
    if name in table and not _again(table[name], entry):
        raise T2TError(
            f"{kind} {name!r} is registered twice: {_PLACES[table[name]]} and {place}; rename one of them"
        )
    table[name] = entry
    _PLACES[entry] = place


def _place(frame: FrameType | None) -> str:
    """The line that called `register_...`, which called what has this frame."""
    for _ in range(2):
        frame = frame and frame.f_back
    return f"{frame.f_code.co_filename}, line {frame.f_lineno}" if frame else "a place unknown"


def _again(old: Callable, new: Callable) -> bool:
    """Whether an entry is an old one whose module is loaded again, as in a notebook."""
    return old.__module__ == new.__module__ and _package(new) != _importing


def _package(entry: object) -> str:
    return entry.__module__.partition(".")[0]


def problem(name: str, **settings: Any) -> Problem:
    """The problem of that name, built with `settings` (such as `data_source="sample"`).

    `NAME_rev` is the problem NAME with inputs and targets swapped; see `problems.reversed`.

    Raises:
        T2TError: there is no such problem, and the message names the near ones; it lacks methods; it has
            no such setting; or no reverse.
    """
    importlib.import_module("t2t_revival.problems")
    base = name.removesuffix(REVERSED) if name not in _PROBLEMS else name
    if base not in _PROBLEMS:
        raise T2TError(t2t_names.explain_problem(name) or _unknown(name, list_problems(), "problem"))
    _check_class(base)
    _check_settings(base, settings)
    made = _PROBLEMS[base](**settings)
    return made if base == name else _reverse(made)


def _check_class(name: str) -> None:
    """Checks that a problem can be made of what is registered."""
    from t2t_revival.problems.problem import Problem

    cls = _PROBLEMS[name]
    if not issubclass(cls, Problem):
        raise T2TError(f"problem {name!r} ({_PLACES[cls]}): its class is no Text2TextProblem, nor a Problem")
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        raise T2TError(f"problem {name!r} ({_PLACES[cls]}) lacks {', '.join(missing)}")


def _reverse(made: Problem) -> Problem:
    from t2t_revival.problems.problem import Text2TextProblem
    from t2t_revival.problems.reversed import ReversedProblem

    if not isinstance(made, Text2TextProblem):
        raise T2TError(f"problem {made.name} has no reverse: it is not a problem of text to text")
    return ReversedProblem(made)


def _check_settings(name: str, settings: dict[str, Any]) -> None:
    accepted = inspect.signature(_PROBLEMS[name]).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values()):
        return
    if wrong := [setting for setting in settings if setting not in accepted]:
        cls = _PROBLEMS[name]
        place = f" ({_PLACES[cls]})" if _package(cls) in _PACKAGES else ""
        raise T2TError(f"problem {name}{place} has no {wrong[0]}; it has {', '.join(accepted) or 'none'}")


def hparams(name: str, overrides: str = "") -> HParams:
    """The hparams set of that name, with `overrides` such as "batch_size=2048,num_heads=4".

    Raises:
        T2TError: there is no such set, its function fails, or an override is wrong.
    """
    importlib.import_module("t2t_revival.hparams")
    if name not in _HPARAMS:
        raise T2TError(t2t_names.explain_hparams(name) or _unknown(name, _HPARAMS, "hparams set"))
    return _made(name).override(overrides)


def _made(name: str) -> HParams:
    """What the function of an hparams set gives."""
    from t2t_revival.hparams.hparams import HParams

    who = f"hparams set {name!r} ({_PLACES[_HPARAMS[name]]})"
    try:
        made = _HPARAMS[name]()
    except dataclasses.FrozenInstanceError as error:
        raise T2TError(f"{who}: {error}: a set is not changed; return one.replace(name=value)") from error
    except T2TError as error:
        raise T2TError(f"{who}: {error}") from error
    if not isinstance(made, HParams):
        raise T2TError(f"{who}: its function returns {type(made).__name__}, not HParams")
    return made


def schedule_factors(schedule: str) -> list[ScheduleFactor]:
    """The factors of a `learning_rate_schedule`, such as "constant*linear_warmup".

    Raises:
        T2TError: one of them is unknown, and the message names the near or the known ones.
    """
    importlib.import_module("t2t_revival.training.schedule_factors")
    names = [name.strip() for name in schedule.split("*")]
    for name in names:
        if name not in _SCHEDULE_FACTORS:
            raise T2TError(_unknown(name, _SCHEDULE_FACTORS, "factor of learning_rate_schedule"))
    return [_SCHEDULE_FACTORS[name] for name in names]


def _unknown(name: str, table: dict, kind: str) -> str:
    """Says that there is no such name, and what may be the reason."""
    message = did_you_mean(name, table, kind)
    if not _PACKAGES:
        return f"{message} (one of your own needs --t2t_usr_dir)"
    tables = (_PROBLEMS, _HPARAMS, _SCHEDULE_FACTORS)
    own = {_package(entry) for table in tables for entry in table.values()}
    if idle := [str(folder) for package, folder in _PACKAGES.items() if package not in own]:
        return f"{message} ({idle[0]} registers nothing: its __init__.py must import the modules that do)"
    return message


def list_problems() -> dict[str, str]:
    """Names of all problems, sorted, each with its docstring's first line; reversed ones among them."""
    from t2t_revival.problems.problem import Text2TextProblem
    from t2t_revival.problems.reversed import one_way

    reverses = {
        f"{name}{REVERSED}": f"{name} with inputs and targets swapped, on the same data."
        for name, cls in _PROBLEMS.items()
        if issubclass(cls, Text2TextProblem) and not one_way(cls)
    }
    return dict(sorted({**reverses, **_summaries(_PROBLEMS)}.items()))


def list_hparams() -> dict[str, str]:
    """Names of all hparams sets, sorted, each with its docstring's first line."""
    importlib.import_module("t2t_revival.hparams")
    return _summaries(_HPARAMS)


def list_schedule_factors() -> dict[str, str]:
    """Names of all factors of the learning rate, sorted, each with its docstring's first line."""
    importlib.import_module("t2t_revival.training.schedule_factors")
    return _summaries(_SCHEDULE_FACTORS)


def _summaries(table: dict) -> dict[str, str]:
    return {name: (table[name].__doc__ or "").strip().split("\n")[0] for name in sorted(table)}


def import_usr_dir(usr_dir: str) -> None:
    """Imports a user's package, so that its registrations run (T2T's `--t2t_usr_dir`); once in a process.

    This runs the user's code: it is the one door through which code outside this package runs.

    Raises:
        T2TError: the folder is missing, is no package, is named as another module, or fails while it is
            imported; then file and line are named.
    """
    global _importing
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
    _importing = folder.name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        _forget(folder.name)
        raise T2TError(users_fault(error) or f"--t2t_usr_dir={usr_dir}: {_said(error)}") from error
    finally:
        _importing = ""


def _check_package(folder: Path, flag: str) -> None:
    """Checks that a folder is a package which hides no other module."""
    if not folder.exists():
        raise T2TError(f"{flag}: no such folder ({folder})")
    if not folder.is_dir():
        raise T2TError(f"{flag}: a file; give the folder that it is in: {folder.parent}")
    if not (folder / "__init__.py").is_file():
        raise T2TError(f"{flag}: no __init__.py there; it must be a Python package")
    if "." in folder.name:
        raise T2TError(f"{flag}: a package's name has no dot; rename the folder")
    same_name = sys.modules.get(folder.name)
    spec = getattr(same_name, "__spec__", None) if same_name else importlib.util.find_spec(folder.name)
    origin = spec.origin if spec else None
    if (same_name or origin) and Path(origin or "").resolve() != (folder / "__init__.py").resolve():
        raise T2TError(f"{flag}: {folder.name!r} is the name of another module; rename the folder")


def _forget(package: str) -> None:
    """Takes away what a package that failed has left, so that it can be imported when it is mended."""
    for table in (_PROBLEMS, _HPARAMS, _SCHEDULE_FACTORS):
        for name in [name for name, entry in table.items() if _package(entry) == package]:
            del table[name]
    for module in [module for module in sys.modules if module.partition(".")[0] == package]:
        del sys.modules[module]


def usr_dir(package: str) -> str | None:
    """The folder of a user's package that was imported; None: there is none of that name."""
    folder = _PACKAGES.get(package)
    return str(folder) if folder else None


def usr_dir_of(problem: str) -> str | None:
    """The folder of the user's package that registers a problem; None: it is built in, or unknown."""
    entry = _PROBLEMS.get(problem) or _PROBLEMS.get(problem.removesuffix(REVERSED))
    return usr_dir(_package(entry)) if entry else None


def users_fault(error: BaseException) -> str | None:
    """What went wrong in the code of a user's package, with file and line; None: it was not there."""
    if isinstance(error, SyntaxError) and _is_users(error.filename):
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    if not frames:
        return None
    place = f"{frames[-1].filename}, line {frames[-1].lineno}"
    return _said(error) if place in str(error) else f"{place}: {_said(error)}"


def _is_users(file: str | None) -> bool:
    return file is not None and any(folder in Path(file).parents for folder in _PACKAGES.values())


def _said(error: BaseException) -> str:
    if isinstance(error, T2TError):
        return str(error)
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "tensor2tensor":
        return f"{text}; {PORTING}"
    return text
