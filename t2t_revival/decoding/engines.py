"""The engines that decode, by name; TensorFlow and JAX are imported only where they are the engine."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeAlias

from t2t_revival.checkpoints.directory import Checkpoint
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.addons import ConvertedModel, addon
from t2t_revival.decoding.engine import Engine, EngineConfig, load_transformer
from t2t_revival.decoding.notes import OnNote
from t2t_revival.decoding.options import CTRANSLATE2, INT8, JAX, TENSORFLOW, DecodeHParams
from t2t_revival.hparams import HParams
from t2t_revival.utils.keras_config import check_usable

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies
    from t2t_revival.decoding.addons import Shortlist
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.model import Transformer
    from t2t_revival.problems.problem import Problem

Model: TypeAlias = "Transformer | ConvertedModel"
CLASSES = {TENSORFLOW: "tensorflow_engine:TensorFlowEngine", JAX: "jax_engine:JaxEngine"}


def check_options(
    options: DecodeHParams, hparams: HParams, config: EngineConfig, problem: Problem | None
) -> None:
    """Checks, before a model is loaded, that an engine decodes with it and with these options.

    Raises:
        T2TError: it does not support one of them, or Keras's configuration.
    """
    if config.name == TENSORFLOW:
        check_usable()
    asked = options.asked({"int8": config.precision == INT8})
    capabilities.check(asked, config.place, *capabilities.places_of(hparams, problem))


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
        load: Callable[..., ConvertedModel] = addon("ctranslate2_model")
        converted = load(hparams, vocabularies, options, config, on_note, translations, alignment_heads)
        converted.load_checkpoint(checkpoint)
        return converted
    return load_transformer(checkpoint.path, hparams, vocabularies, config.precision)


def open_engine(
    model: Model, vocabularies: Vocabularies, options: DecodeHParams, config: EngineConfig
) -> Engine:
    """Returns the engine that decodes with a model.

    Raises:
        T2TError: as `TensorFlowEngine` and `JaxEngine`.
    """
    of_core = CLASSES.get(config.engine)
    kind: Any = resolve_name(f"{__package__}.{of_core}") if of_core else addon("ctranslate2_engine")
    engine: Engine = kind(model, vocabularies.targets, options, config)
    return engine
