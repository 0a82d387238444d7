"""The Transformer of "Attention Is All You Need", as tensor2tensor offered it, on Keras 3."""

from importlib.machinery import PathFinder
from pathlib import Path

from t2t_revival.utils.keras_config import check_at_import
from t2t_revival.utils.native_log import quiet_tensorflow
from t2t_revival.utils.streams import reserve_descriptors

__version__ = "0.2.0"  # the one place: setup.py reads it, tests hold CITATION.cff and CHANGELOG.md equal

_PARTS = ("problems", "hparams")  # in a checkout they stand beside the package, not in it
__path__.append(str(Path(__file__).absolute().parents[1]))
for _part in _PARTS:  # else those of another checkout, which is installed, would be taken
    if not (_spec := PathFinder.find_spec(f"{__name__}.{_part}", __path__)) or not _spec.origin:
        raise ImportError(f"no {_part} in {__path__[0]} or beside it: copy the whole checkout, or install it")

reserve_descriptors()
quiet_tensorflow()
check_at_import()
