"""Tables of problems, hparams sets, optimizers and factors of the learning rate, and decorators to fill them.

This module imports users' packages, and nothing of what is registered. `registry` looks names up, and offers
the decorators to users. They raise `T2TError` where another class or function has the name.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.utils.files import is_file_name

REVERSED = "_rev"  # suffix of a problem in the other direction, as in T2T
ProblemType = TypeVar("ProblemType", bound=type)
HParamsFunction = TypeVar("HParamsFunction", bound=Callable[[], Any])
ScheduleFactor = Callable[[Any, Any], Any]  # of the step and the hparams
Optimizer = Callable[[Any], Any]  # of the hparams

PROBLEMS: dict[str, type[Any]] = {}
HPARAMS: dict[str, Callable[[], Any]] = {}
SCHEDULE_FACTORS: dict[str, ScheduleFactor] = {}
OPTIMIZERS: dict[str, Optimizer] = {}
PACKAGES: dict[str, Path] = {}  # folders of imported users' packages, by name
PORTING = (
    "tensor2tensor's names are in t2t_revival: registry, HParams, Text2TextProblem; "
    "see t2t_revival/from_tensor2tensor.md"
)


def snake_case(name: str) -> str:
    """Converts a class name: `TranslateEnde` -> `translate_ende`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def register_problem(cls: ProblemType) -> ProblemType:
    """Class decorator: registers a `Problem` under its class name in snake_case."""
    _add(PROBLEMS, snake_case(cls.__name__), cls, "problem")
    return cls


def register_hparams(function: HParamsFunction) -> HParamsFunction:
    """Function decorator: registers a function that returns `HParams` under its name."""
    _add(HPARAMS, function.__name__, function, "hparams set")
    return function


def register_schedule_factor(function: ScheduleFactor) -> ScheduleFactor:
    """Function decorator: registers a factor of `HParams.learning_rate_schedule` under the function's name.

    The function is called with the number of the update, a float32 tensor counted from 1, and the
    hyperparameters. It returns a number or a tensor of the step's shape, computed by `keras.ops`, so that it
    runs inside the training graph of any backend.
    """
    _add(SCHEDULE_FACTORS, function.__name__, function, "schedule factor")
    return function


def register_optimizer(function: Optimizer) -> Optimizer:
    """Function decorator: registers an optimizer for `HParams.optimizer` under the function's name.

    The function is called with the hyperparameters, and returns one of Keras's optimizers, or of that kind.
    The training sets its learning rate, and makes a `TrainingOptimizer` of it.
    """
    _add(OPTIMIZERS, function.__name__, function, "optimizer")
    return function


def _add(table: dict, name: str, entry: Callable, kind: str) -> None:
    if not is_file_name(name):
        raise T2TError(f"{kind} {name!r}: not a valid name: it becomes part of file names; rename it")
    if name in table and table[name].__module__ != entry.__module__:  # equal: a module is loaded again
        modules = f"{table[name].__module__} and {entry.__module__}"
        raise T2TError(f"{kind} {name!r} is registered twice, in {modules}: rename one of them")
    table[name] = entry


def schedule_factors(schedule: str) -> list[ScheduleFactor]:
    """Returns the factors of a `learning_rate_schedule`, such as "constant*linear_warmup".

    Raises:
        T2TError: one of them is unknown (names similar ones).
    """
    names = [name.strip() for name in schedule.split("*")]
    for name in names:
        if name not in SCHEDULE_FACTORS:
            raise T2TError(unknown(name, SCHEDULE_FACTORS, "factor of learning_rate_schedule"))
    return [SCHEDULE_FACTORS[name] for name in names]


def optimizer(name: str) -> Optimizer:
    """Returns the function of an optimizer; raises T2TError if it is unknown (names similar ones)."""
    if name not in OPTIMIZERS:
        raise T2TError(unknown(name, OPTIMIZERS, "optimizer"))
    return OPTIMIZERS[name]


def unknown(name: str, table: Mapping[str, object], kind: str) -> str:
    """Returns the message for an unknown name, with a possible reason."""
    message = did_you_mean(name, table, kind)
    if not PACKAGES:
        return f"{message} (one of your own needs --t2t_usr_dir)"
    tables = (PROBLEMS, HPARAMS, SCHEDULE_FACTORS, OPTIMIZERS)
    registering = {entry.__module__.partition(".")[0] for table in tables for entry in table.values()}
    if idle := [str(folder) for package, folder in PACKAGES.items() if package not in registering]:
        return f"{message} ({idle[0]} registers nothing: its __init__.py must import the modules that do)"
    return message


def import_usr_dir(usr_dir: str) -> None:
    """Imports a user's package, so that its registrations run (T2T's `--t2t_usr_dir`); once per process.

    No other function runs code outside this package.

    Raises:
        T2TError: the folder is missing, is not a package or has the name of another module, or a module that
            it imports is missing. Other errors of its code are raised as they are.
    """
    folder = Path(usr_dir).expanduser().resolve()
    if PACKAGES.get(folder.name) == folder and folder.name in sys.modules:
        return
    if fault := _package_fault(folder):
        raise T2TError(f"--t2t_usr_dir={usr_dir}: {fault}")
    spec = importlib.util.spec_from_file_location(folder.name, folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[folder.name] = module
    PACKAGES[folder.name] = folder
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[folder.name], PACKAGES[folder.name]
        if isinstance(error, ModuleNotFoundError):
            hint = f"; {PORTING}" if (error.name or "").partition(".")[0] == "tensor2tensor" else ""
            raise T2TError(f"--t2t_usr_dir={usr_dir}: {error}{hint}") from error
        raise


def _package_fault(folder: Path) -> str:
    """Returns why a folder is no package, or hides another module; "" if it is one."""
    if not folder.exists():
        return f"no such folder ({folder})"
    if not folder.is_dir():
        return f"not a folder but a file; give its folder: {folder.parent}"
    if not (folder / "__init__.py").is_file():
        return "no __init__.py there; the folder must be a Python package"
    if "." in folder.name:
        return "a package's name cannot have a dot; rename the folder"
    loaded = sys.modules.get(folder.name)
    spec = getattr(loaded, "__spec__", None) if loaded else importlib.util.find_spec(folder.name)
    origin = spec.origin if spec else None
    if (loaded or origin) and Path(origin or "").resolve() != (folder / "__init__.py").resolve():
        return f"{folder.name!r} is already the name of another module; rename the folder"
    return ""


def usr_dir(package: str) -> str | None:
    """Returns the folder of an imported user's package; `None` if there is none of that name."""
    folder = PACKAGES.get(package)
    return str(folder) if folder else None
