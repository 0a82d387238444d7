"""The engines that decode, by name; TensorFlow and JAX are imported only where they are the engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias, cast

from t2t_revival.checkpoints.directory import Checkpoint
from t2t_revival.decoding.ctranslate2_engine import CTranslate2Model
from t2t_revival.decoding.engine import Engine, EngineConfig, load_transformer
from t2t_revival.decoding.notes import OnNote
from t2t_revival.decoding.options import CTRANSLATE2, FLOAT32, INT8, JAX, TENSORFLOW, DecodeHParams
from t2t_revival.decoding.right_to_left import RightToLeftEngine
from t2t_revival.hparams import HParams
from t2t_revival.utils.keras_config import check_usable

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies
    from t2t_revival.decoding.addons import Shortlist
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.model import Transformer

Model: TypeAlias = "Transformer | CTranslate2Model"
CLASSES = {  # modules and classes, by name
    TENSORFLOW: ("tensorflow_engine", "TensorFlowEngine"),
    JAX: ("jax_engine", "JaxEngine"),
    CTRANSLATE2: ("ctranslate2_engine", "CTranslate2Engine"),
}


def check_options(options: DecodeHParams, config: EngineConfig) -> None:
    """Checks, before a model is loaded, that Keras decodes with these options where it is the engine.

    Raises:
        T2TError: it does not support one of them, or Keras's configuration.
    """
    if config.name == TENSORFLOW:
        options.check_no_shortlist()
        check_usable()
        _class_of(config).check(options, config)


def open_model(
    checkpoint: Checkpoint,
    hparams: HParams,
    vocabularies: Vocabularies,
    options: DecodeHParams,
    config: EngineConfig,
    on_note: OnNote,
    translations: Shortlist | None,
    alignment_heads: AlignmentHeads | None,
) -> Model:
    """Loads the model of a checkpoint, for `open_engine`; see `Translator.load`.

    Raises:
        T2TError: the checkpoint is corrupt, or of another model; CTranslate2 is not installed, or does not
            support the model, the options or the precision.
    """
    if config.name == CTRANSLATE2:
        converted = CTranslate2Model(
            hparams, vocabularies, options, config, on_note, translations, alignment_heads
        )
        converted.load_checkpoint(checkpoint)
        return converted
    dtype = FLOAT32 if config.precision == INT8 else config.precision
    return load_transformer(checkpoint.path, hparams, vocabularies, dtype)


def open_engine(
    model: Model, vocabularies: Vocabularies, options: DecodeHParams, config: EngineConfig
) -> Engine:
    """Returns the engine that decodes with a model.

    Raises:
        T2TError: Keras decodes, and the options have a shortlist; or as `TensorFlowEngine`, `JaxEngine` and
            `RightToLeftEngine`.
    """
    if config.name == TENSORFLOW:
        options.check_no_shortlist()
    engine = _class_of(config)(model, vocabularies.targets, options, config)  # type: ignore[call-arg]
    return RightToLeftEngine(engine) if model.hparams.reverse_target else engine


def _class_of(config: EngineConfig) -> type[Engine]:
    name = JAX if config.name == TENSORFLOW and _backend() == JAX else config.name
    module, engine = CLASSES[name]
    return cast("type[Engine]", getattr(import_module(f"{__package__}.{module}"), engine))


def _backend() -> str:
    """Returns the name of Keras's backend: "tensorflow", "jax" or "torch"."""
    import keras

    return str(keras.backend.backend())
