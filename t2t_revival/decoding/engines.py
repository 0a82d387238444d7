"""The engines that decode, by name; TensorFlow is imported only where it is the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from t2t_revival.decoding.ctranslate2_engine import CTranslate2Engine
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.training.checkpoints.directory import Checkpoint, restore_weights

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder
    from t2t_revival.decoding.tensorflow_engine import TensorFlowEngine
    from t2t_revival.decoding.translations import Translations
    from t2t_revival.model import Transformer

TENSORFLOW, CTRANSLATE2 = "tensorflow", "ctranslate2"
ENGINES = (TENSORFLOW, CTRANSLATE2)
Model: TypeAlias = "Transformer | CTranslate2Engine"


def check_engine(engine: str, precision: str) -> None:
    """Checks the name of an engine, and that it may have a precision.

    Raises:
        T2TError: there is no such engine, or it has no such precision.
    """
    if engine not in ENGINES:
        raise T2TError(f"engine={engine} must be {' or '.join(ENGINES)}")
    if engine == TENSORFLOW and precision == "int8":
        raise T2TError("precision=int8 is for engine=ctranslate2, and for exported models")


def new_transformer(hparams: HParams, vocab_size: int, precision: str) -> Transformer:
    """Makes a model with random weights; `precision` is a Keras dtype policy."""
    from t2t_revival.model import Transformer

    return Transformer(hparams, vocab_size, dtype=precision)


def load_weights(model: Model, checkpoint: Checkpoint) -> None:
    """Loads the weights of a checkpoint.

    Raises:
        T2TError: the checkpoint is corrupt, or of another model.
    """
    if isinstance(model, CTranslate2Engine):
        model.load_checkpoint(checkpoint)
    else:
        restore_weights(model, checkpoint.path)


def engine_of(
    model: Model,
    vocabulary: TextEncoder,
    options: DecodeHParams,
    constant_weights: bool,
    translations: Translations | None,
) -> CTranslate2Engine | TensorFlowEngine:
    """Returns the engine that decodes with a model; see `TensorFlowEngine`."""
    if isinstance(model, CTranslate2Engine):
        return model
    return _tensorflow_engine(model, vocabulary, options, constant_weights, translations)


def _tensorflow_engine(*arguments: Any) -> TensorFlowEngine:
    from t2t_revival.decoding.tensorflow_engine import TensorFlowEngine

    return TensorFlowEngine(*arguments)


def describe(model: Model) -> str:
    """Names the engine of a model and the precision in which it computes."""
    if isinstance(model, CTranslate2Engine):
        return f"{CTRANSLATE2}, {model.precision}"
    return f"{TENSORFLOW}, {model.dtype_policy.name}"
