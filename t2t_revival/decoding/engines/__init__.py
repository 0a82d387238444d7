"""The engines that decode, by name; TensorFlow and JAX are imported only where they are the engine."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeAlias

from t2t_revival.decoding import capabilities
from t2t_revival.decoding.addons import ConvertedModel, addon
from t2t_revival.decoding.engine import Engine, EngineConfig
from t2t_revival.decoding.options import INT8, JAX, TENSORFLOW, DecodeHParams
from t2t_revival.hparams import HParams
from t2t_revival.utils.keras_config import check_usable

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies
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
