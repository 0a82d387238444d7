"""The Transformer of "Attention Is All You Need", as tensor2tensor offered it, on Keras 3."""

from t2t_revival.utils.keras_config import check_at_import
from t2t_revival.utils.native_log import quiet_tensorflow
from t2t_revival.utils.streams import reserve_descriptors

__version__ = "0.2.0"  # the one place: setup.py reads it, tests hold CITATION.cff and CHANGELOG.md equal

reserve_descriptors()
quiet_tensorflow()
check_at_import()
