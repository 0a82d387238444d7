"""Work around the first import of a package, whichever module imports it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Around = Callable[[ModuleType], AbstractContextManager[None]]


def wrap_import(name: str, around: Around) -> None:
    """Runs the first import of a package in a context, which is called with the module."""
    known = [(finder.name, finder.around) for finder in sys.meta_path if isinstance(finder, _Finder)]
    if name not in sys.modules and (name, around) not in known:
        sys.meta_path.insert(0, _Finder(name, around))


class _Finder(MetaPathFinder):
    def __init__(self, name: str, around: Around) -> None:
        self.name, self.around = name, around

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds the package, as `importlib.abc.MetaPathFinder.find_spec`."""
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)  # while the others look for it
        spec = importlib.util.find_spec(fullname)
        sys.meta_path.insert(0, self)
        if spec and spec.loader:
            _execute_in(self.around, spec.loader)
        return spec


def _execute_in(around: Around, loader: Any) -> None:
    execute = loader.exec_module

    def wrapped(module: ModuleType) -> None:
        loader.exec_module = execute
        with around(module):
            execute(module)

    loader.exec_module = wrapped
