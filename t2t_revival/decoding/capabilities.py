"""Models that the engines and formats hold: values of hyperparameters, as allow-lists.

What is not listed is refused, so that a new value or hyperparameter is refused until it is tried there.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams

SAVED_MODEL, LITERT, CTRANSLATE2_FORMAT = "a SavedModel", "LiteRT's format", "CTranslate2's format"
CTRANSLATE2, JAX, INT8, ENSEMBLE = "CTranslate2", "decoding on JAX", "int8", "an ensemble"
FORMAT = "give --format=saved_model"
HOLDERS = {  # engines and formats as people call them, with what to do where one does not hold a model
    SAVED_MODEL: "decode with t2t-decoder",
    LITERT: FORMAT,
    CTRANSLATE2_FORMAT: FORMAT,
    CTRANSLATE2: "use --engine=tensorflow",
    JAX: "set KERAS_BACKEND=tensorflow",
    INT8: "use float32 or bfloat16",
    ENSEMBLE: "leave the model out",
}


def _all(*allowed: Any) -> dict[str, tuple[Any, ...]]:
    return dict.fromkeys(HOLDERS, allowed)


def _off(*holders: str) -> dict[str, tuple[Any, ...]]:
    return dict.fromkeys(holders, (False,))


BOTH = (False, True)
OF_CTRANSLATE2 = (CTRANSLATE2, CTRANSLATE2_FORMAT)
VALUES: dict[str, dict[str, tuple[Any, ...]]] = {  # of each hyperparameter, those that each holder holds
    "pos": _all("sinusoid", "timing", "emb"),
    "decoder_self_attention": _all("attention", "ssru") | dict.fromkeys(OF_CTRANSLATE2, ("attention",)),
    "layer_preprocess_sequence": _all("none", "n"),
    "layer_postprocess_sequence": _all("dan", "da"),
    "use_target_space_embedding": _all(*BOTH),
    "shared_embedding_and_softmax_weights": _all(*BOTH),
    "reverse_target": _all(*BOTH) | _off(LITERT, CTRANSLATE2_FORMAT),  # whose outputs nobody turns round
    "deterministic_attention": _all(*BOTH) | _off(*OF_CTRANSLATE2, LITERT, ENSEMBLE),
}
SIZES = (  # all of whose values are held, but for those in `OFF`
    *("num_hidden_layers", "num_encoder_layers", "num_decoder_layers", "hidden_size", "filter_size"),
    *("num_heads", "attention_key_channels", "attention_value_channels", "attention_window"),
    *("norm_epsilon", "max_length"),
)
OFF = dict.fromkeys(OF_CTRANSLATE2, ("attention_window",))  # which must be 0
OF_TRAINING = (  # which do not change what a trained model computes
    *("layer_prepostprocess_dropout", "attention_dropout", "relu_dropout", "label_smoothing"),
    *(
        "subword_dropout",
        "subword_dropout_side",
        "guided_alignment_weight",
        "ema_decay",
        "freeze",
        "lora_rank",
    ),
    *("optimizer", "optimizer_adam_beta1", "optimizer_adam_beta2", "optimizer_adam_epsilon"),
    *("learning_rate_schedule", "learning_rate_constant", "learning_rate_warmup_steps"),
    *("learning_rate_decay_steps", "learning_rate_decay_rate", "learning_rate_decay_staircase"),
    *("batch_size", "effective_batch_size", "min_length_bucket", "length_bucket_step"),
    *("train_steps", "average_checkpoints"),
)


def check_held(hparams: HParams, holder: str) -> None:
    """Checks that an engine or a format can hold a model.

    A hyperparameter that is listed nowhere must have its default, which is that of models that were trained
    before there was such a hyperparameter.

    Args:
        hparams: of the model.
        holder: one of `HOLDERS`.

    Raises:
        T2TError: it cannot; names the hyperparameter.
    """
    for field in dataclasses.fields(hparams):
        name, value = field.name, getattr(hparams, field.name)
        if name in OFF.get(holder, ()):
            held = value == 0
        elif name in VALUES:
            held = value in VALUES[name][holder]
        else:
            held = name in (*SIZES, *OF_TRAINING) or value == field.default
        if not held:
            raise T2TError(
                f"{holder} does not support {name}={value}, which this model has: {HOLDERS[holder]}"
            )
