"""The engines that decode, by name; TensorFlow and JAX are imported only where they are the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

from t2t_revival.checkpoints.directory import Checkpoint, restore_weights
from t2t_revival.decoding.ctranslate2_engine import CTranslate2Engine
from t2t_revival.decoding.notes import OnNote
from t2t_revival.decoding.options import CTRANSLATE2, FLOAT32, INT8, JAX, TENSORFLOW, DecodeHParams
from t2t_revival.decoding.right_to_left import RightToLeftEngine
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.utils.keras_config import check_usable

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.annotation import Annotator
    from t2t_revival.decoding.jax_engine import JaxEngine
    from t2t_revival.decoding.lexical_search import LexicalSearch
    from t2t_revival.decoding.tensorflow_engine import TensorFlowEngine
    from t2t_revival.decoding.translations import Translations
    from t2t_revival.model import Transformer

Model: TypeAlias = "Transformer | CTranslate2Engine"
Engine: TypeAlias = "CTranslate2Engine | TensorFlowEngine | JaxEngine | RightToLeftEngine"
NO_CONSTRAINTS = "CTranslate2 does not support constraints of outputs: use --engine=tensorflow"


def check_options(engine: str, options: DecodeHParams, precision: str) -> None:
    """Checks, before a model is loaded, that Keras decodes with these options where it is the engine.

    Raises:
        T2TError: it does not support one of them, or Keras's configuration.
    """
    if engine != TENSORFLOW:
        return
    check_usable()
    if backend() == JAX:
        _jax_usable(options, precision == INT8)


def new_model(
    engine: str,
    hparams: HParams,
    vocabularies: Vocabularies,
    options: DecodeHParams,
    precision: str,
    num_parallel_batches: int,
    on_note: OnNote,
    translations: Translations | None,
) -> Model:
    """Makes a model, to which `load_weights` gives its weights; see `Translator.load`.

    Raises:
        T2TError: CTranslate2 is not installed, or does not support the model, the options or the precision.
    """
    if engine == CTRANSLATE2:
        settings = options, precision, num_parallel_batches, on_note, translations
        return CTranslate2Engine(hparams, vocabularies, *settings)
    return _new_transformer(hparams, vocabularies, precision)


def _new_transformer(hparams: HParams, vocabularies: Vocabularies, precision: str) -> Transformer:
    from t2t_revival.model import Transformer

    dtype = FLOAT32 if precision == INT8 else precision
    target_size = vocabularies.target_size
    return Transformer(hparams, vocabularies.inputs.size, target_vocab_size=target_size, dtype=dtype)


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
    int8: bool,
    alignment_heads: AlignmentHeads | None = None,
) -> Engine:
    """Returns the engine that decodes with a model; arguments are those of `TensorFlowEngine`.

    Raises:
        T2TError: as `TensorFlowEngine`, `JaxEngine` and `RightToLeftEngine`.
    """
    engine: CTranslate2Engine | TensorFlowEngine | JaxEngine
    if isinstance(model, CTranslate2Engine):
        engine = model
    elif backend() == JAX:
        engine = _jax_engine(model, options, int8, vocabulary.banned)
    else:
        settings = options, constant_weights, translations, int8, alignment_heads
        engine = _tensorflow_engine(model, vocabulary, *settings)
    return RightToLeftEngine(engine) if model.hparams.reverse_target else engine


def _tensorflow_engine(*arguments: Any) -> TensorFlowEngine:
    from t2t_revival.decoding.tensorflow_engine import TensorFlowEngine

    return TensorFlowEngine(*arguments)


def _jax_usable(*arguments: Any) -> None:
    from t2t_revival.decoding.jax_engine import check_usable

    check_usable(*arguments)


def _jax_engine(*arguments: Any) -> JaxEngine:
    from t2t_revival.decoding.jax_engine import JaxEngine

    return JaxEngine(*arguments)


def backend() -> str:
    """Returns the name of Keras's backend: "tensorflow", "jax" or "torch"."""
    import keras

    return str(keras.backend.backend())


def lexical_search_of(engine: Engine) -> LexicalSearch:
    """Returns an engine's search for outputs that have given phrases.

    Raises:
        T2TError: it has none.
    """
    if isinstance(engine, CTranslate2Engine):
        raise T2TError(NO_CONSTRAINTS)
    if isinstance(engine, RightToLeftEngine):
        raise T2TError(
            "constraints cannot be combined with reverse_target, which this model has: leave them out"
        )
    return engine.lexical_search


def annotator_of(engine: Engine, heads: AlignmentHeads) -> Annotator:
    """Returns what aligns words with heads, of an engine that has a `lexical_search_of`.

    Raises:
        T2TError: the model has not these heads.
    """
    return cast("TensorFlowEngine", engine).annotator(heads)


def transformer_of(model: Model) -> Transformer:
    """Returns a model on TensorFlow.

    Raises:
        T2TError: its engine is CTranslate2.
    """
    if isinstance(model, CTranslate2Engine):
        raise T2TError("the model is not on TensorFlow: use --engine=tensorflow")
    return model


def describe(model: Model, int8: bool) -> str:
    """Names the engine of a model and the precision in which it computes; `int8` is for TensorFlow."""
    if isinstance(model, CTranslate2Engine):
        return f"{CTRANSLATE2}, {model.precision}"
    return f"{backend()}, {INT8 if int8 else model.dtype_policy.name}"
