"""The Transformer of "Attention Is All You Need", as tensor2tensor offered it, on Keras 3.

The names in `__all__` are the public ones. Each is imported when it is first used, so that TensorFlow is only
where one of them needs it. Importing the package changes nothing else in the process.
"""

from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_revival import registry
    from t2t_revival.addons.lexical.constraints import LineConstraints
    from t2t_revival.addons.lexical.terminology import Terminology
    from t2t_revival.data.base_source import Source
    from t2t_revival.data.pairs_source import PairsSource
    from t2t_revival.decoding.options import DecodeHParams
    from t2t_revival.decoding.outputs import Translation
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.errors import T2TError
    from t2t_revival.experiment import Experiment
    from t2t_revival.hparams import HParams
    from t2t_revival.model import Transformer
    from t2t_revival.problems import Data, Problem, Text2TextProblem
    from t2t_revival.training.loss import TokenCrossEntropy
    from t2t_revival.training.optimizer import make_optimizer
    from t2t_revival.training.run_config import RunConfig

__all__ = [
    "Data",
    "DecodeHParams",
    "Experiment",
    "HParams",
    "LineConstraints",
    "PairsSource",
    "Problem",
    "RunConfig",
    "Source",
    "T2TError",
    "Terminology",
    "Text2TextProblem",
    "TokenCrossEntropy",
    "Transformer",
    "Translation",
    "Translator",
    "make_optimizer",
    "registry",
]
_MODULES = {
    "Data": "problems.problem",
    "DecodeHParams": "decoding.options",
    "Experiment": "experiment",
    "HParams": "hparams.hparams",
    "LineConstraints": "addons.lexical.constraints",
    "PairsSource": "data.pairs_source",
    "Problem": "problems.problem",
    "RunConfig": "training.run_config",
    "Source": "data.base_source",
    "T2TError": "errors",
    "Terminology": "addons.lexical.terminology",
    "Text2TextProblem": "problems.problem",
    "TokenCrossEntropy": "training.loss",
    "Transformer": "model",
    "Translation": "decoding.outputs",
    "Translator": "decoding.translator",
    "make_optimizer": "training.optimizer",
    "registry": "registry",
}

__version__ = "0.2.0"  # the one place: setup.py reads it, tests hold CITATION.cff and CHANGELOG.md equal

_PARTS = ("problems", "hparams")  # in a checkout they stand beside the package, not in it
__path__.append(str(Path(__file__).absolute().parents[1]))
for _part in _PARTS:  # else those of another checkout, which is installed, would be taken
    if not (_spec := PathFinder.find_spec(f"{__name__}.{_part}", __path__)) or not _spec.origin:
        raise ImportError(f"no {_part} in {__path__[0]} or beside it: copy the whole checkout, or install it")

if not TYPE_CHECKING:  # else any name would be one for type checkers

    def __getattr__(name: str) -> object:
        """Imports a public name at its first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{_MODULES[name]}")
        value = module if name == "registry" else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
