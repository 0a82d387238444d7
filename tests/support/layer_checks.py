"""One harness for every layer, after KerasHub's `run_layer_test`, under whichever backend Keras has."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from t2t_revival.model import (
    Decoder,
    DecoderLayer,
    Dropout,
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerConfig,
    LayerNorm,
    MultiHeadAttention,
    PositionalEncoding,
    Residual,
    TokenEmbedding,
)
from t2t_revival.model.extensions.deterministic_attention import DeterministicAttention, Words
from t2t_revival.model.extensions.positions import RelativeAttention, RotaryAttention
from t2t_revival.model.extensions.restricted_attention import RestrictedSelfAttention
from t2t_revival.model.extensions.ssru import SSRU
from t2t_revival.model.feed_forward import GatedFeedForward
from t2t_revival.model.norms import RMSNorm

RNG = np.random.default_rng(2)
X = RNG.standard_normal((2, 5, 8)).astype("float32")
ENCODED = RNG.standard_normal((2, 4, 8)).astype("float32")
IDS = np.array([[3, 4, 5, 6, 1], [7, 1, 0, 0, 0]], "int32")
MASK, ENCODED_MASK = IDS != 0, np.array([[True] * 4, [True, True, False, False]])
LAYER = LayerConfig(
    num_heads=2, hidden_size=8, filter_size=16, dropout=0.1, attention_dropout=0.1, relu_dropout=0.1
)
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")


@dataclass(frozen=True)
class Case:
    """A layer to check.

    Attributes:
        layer_type: its class.
        arguments: of the class, plain values.
        inputs: of `call`, by name, the first one first.
        memory: for each mask in `inputs`, the input whose padding it tells.
        weights: number of trainable weights.
        shape: of the output, where it is not that of the first input.
        trained: whether the output depends on the weights.
    """

    layer_type: Callable[..., Any]
    arguments: dict[str, Any]
    inputs: dict[str, Any]
    weights: int
    memory: dict[str, str] = field(default_factory=dict)
    shape: tuple[int, ...] = (2, 5, 8)
    trained: bool = True


def with_config(**changes: Any) -> dict[str, Any]:
    """Arguments of a layer or stack: `LAYER`, with changes."""
    return {"config": replace(LAYER, **changes)}


SELF: Any = {"inputs": {"x": X, "mask": MASK}, "memory": {"mask": "x"}}
OVER: Any = {
    "inputs": {"x": X, "encoded": ENCODED, "encoded_mask": ENCODED_MASK},
    "memory": {"encoded_mask": "encoded"},
}
CASES = {
    "self-attention": Case(MultiHeadAttention, with_config(), **SELF, weights=2),
    "causal attention": Case(MultiHeadAttention, {**with_config(), "causal": True}, **SELF, weights=2),
    "narrow attention": Case(
        MultiHeadAttention, with_config(key_channels=4, value_channels=12), **SELF, weights=2
    ),
    "cross-attention": Case(
        MultiHeadAttention,
        {**with_config(), "cross_attention": True},
        {"x": X, "encoded": ENCODED, "mask": ENCODED_MASK},
        memory={"mask": "encoded"},
        weights=3,
    ),
    "restricted attention": Case(RestrictedSelfAttention, with_config(attention_window=3), **SELF, weights=2),
    "rotary attention": Case(RotaryAttention, with_config(pos="rotary"), **SELF, weights=2),
    "relative attention": Case(
        RelativeAttention, with_config(pos="relative", max_relative_position=2), **SELF, weights=4
    ),
    "attention with biases": Case(MultiHeadAttention, with_config(projection_bias=True), **SELF, weights=4),
    "deterministic attention": Case(
        DeterministicAttention,
        {"vocab_size": 11, "hidden_size": 8},
        {
            "words_emitted": np.array([[0, 0, 1, 2, 3]] * 2, "int32"),
            "words": Words(np.array([[0, -1, 1, 2]] * 2, "int32"), ENCODED),
        },
        weights=1,
        trained=False,
    ),
    "recurrent unit": Case(SSRU, with_config(), {"x": X}, weights=2),
    "feed-forward": Case(FeedForward, with_config(), {"x": X}, weights=4),
    "gated feed-forward": Case(GatedFeedForward, with_config(ffn_activation="swiglu"), {"x": X}, weights=2),
    "RMS norm": Case(RMSNorm, {"hidden_size": 8, "epsilon": 0.1}, {"x": X}, weights=1),
    "layer norm": Case(LayerNorm, {"hidden_size": 8, "epsilon": 0.1}, {"x": X}, weights=2),
    "residual": Case(Residual, with_config(), {"x": X, "output": X[::-1]}, weights=2),
    "dropout": Case(Dropout, {"rate": 0.1}, {"x": X}, weights=0),
    "embedding": Case(TokenEmbedding, {"vocab_size": 11, "hidden_size": 8}, {"x": IDS}, weights=1),
    "sinusoids": Case(PositionalEncoding, {"hidden_size": 8}, {"x": X}, weights=0),
    "learned positions": Case(
        PositionalEncoding,
        {"hidden_size": 8, "encoding": "emb", "max_length": 7, "target_space": True},
        {"x": X},
        weights=2,
    ),
    "encoder layer": Case(EncoderLayer, {"config": LAYER}, **SELF, weights=10),
    "restricted encoder layer": Case(EncoderLayer, with_config(attention_window=3), **SELF, weights=10),
    "decoder layer": Case(DecoderLayer, with_config(pre_norm=True), **OVER, weights=15),
    "recurrent decoder layer": Case(
        DecoderLayer, with_config(decoder_self_attention="ssru"), **OVER, weights=15
    ),
    "encoder": Case(Encoder, {"num_layers": 2, **with_config(pre_norm=True)}, **SELF, weights=22),
    "decoder": Case(Decoder, {"num_layers": 2, **with_config(norm_epsilon=0.1)}, **OVER, weights=30),
}


def check_layer(case: Case, folder: Path) -> None:
    """Checks a layer from its config to a saved model that holds it.

    Args:
        case: the layer.
        folder: for a file.
    """
    keras.utils.set_random_seed(3)
    layer = _check_config_and_build(case)
    outputs = _check_calls(case, layer)
    _check_masks(case, layer, outputs)
    for precision in PRECISIONS[1:]:
        _check_precision(case, precision, layer.get_weights(), outputs)
    _check_functional_model(case, folder / "model.keras")


def _check_config_and_build(case: Case) -> Any:
    layer = case.layer_type(**case.arguments)
    config = layer.get_config()
    plain = {key: asdict(value) if is_dataclass(value) else value for key, value in case.arguments.items()}
    assert plain.items() <= config.items()
    assert layer.supports_masking
    registered = keras.saving.get_registered_name(case.layer_type)
    assert registered == f"t2t_revival>{case.layer_type.__name__}"
    again = case.layer_type.from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    policy = keras.DTypePolicy("mixed_bfloat16")
    assert case.layer_type(**case.arguments, dtype=policy).get_config().items() >= plain.items()
    layer.build()
    assert layer.built
    assert len(layer.trainable_weights) == case.weights
    by_call = case.layer_type(**case.arguments, name=layer.name)
    _call(by_call, case.inputs)
    assert [weight.path for weight in by_call.weights] == [weight.path for weight in layer.weights]
    return layer


def _check_calls(case: Case, layer: Any) -> np.ndarray:
    outputs = _call(layer, case.inputs)
    assert tuple(outputs.shape) == case.shape
    symbolic = _call(layer, _symbolic(case.inputs))
    assert tuple(symbolic.shape)[-1] == case.shape[-1]
    assert len(symbolic.shape) == len(case.shape)
    assert keras.backend.standardize_dtype(symbolic.dtype) == "float32"
    outputs = ops.convert_to_numpy(outputs)
    assert np.isfinite(outputs).all()
    np.testing.assert_array_equal(ops.convert_to_numpy(_call(layer, case.inputs, training=False)), outputs)
    return outputs


def _check_masks(case: Case, layer: Any, outputs: np.ndarray) -> None:
    """Checks that no output of a token depends on padding."""
    for mask, name in case.memory.items():
        shown = case.inputs[mask]
        changed = {**case.inputs, name: np.where(shown[:, :, None], case.inputs[name], 1 - case.inputs[name])}
        after = ops.convert_to_numpy(_call(layer, changed))
        tokens = shown if name == "x" else np.ones(outputs.shape[:2], bool)
        np.testing.assert_allclose(after[tokens], outputs[tokens], atol=1e-6)
        unmasked = ops.convert_to_numpy(_call(layer, {**changed, mask: None}))
        assert np.abs(unmasked - after).max() > 1e-3


def _check_precision(case: Case, precision: str, weights: list[Any], outputs: np.ndarray) -> None:
    layer = case.layer_type(**case.arguments, dtype=precision)
    layer.build()
    layer.set_weights(weights)
    assert {weight.dtype for weight in layer.trainable_weights} <= {"float32"}
    rough = _call(layer, case.inputs)
    assert keras.backend.standardize_dtype(rough.dtype) == precision.removeprefix("mixed_")
    again = case.layer_type.from_config(layer.get_config())
    assert again.dtype_policy.name == precision
    rough = ops.convert_to_numpy(ops.cast(rough, "float32"))
    tokens = case.inputs["mask"] if case.memory == {"mask": "x"} else np.ones(outputs.shape[:2], bool)
    np.testing.assert_allclose(rough[tokens], outputs[tokens], atol=0.1)  # of padding, anything


def _check_functional_model(case: Case, path: Path) -> None:
    """Checks a step of training in a functional model, and that the model can be saved and loaded."""
    layer = case.layer_type(**case.arguments)
    inputs = _symbolic(case.inputs)
    model = keras.Model(tree.flatten(inputs), _call(layer, inputs))
    arrays = tree.flatten(case.inputs)
    if case.trained and layer.trainable_weights:
        before = layer.get_weights()
        model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
        target = RNG.standard_normal(case.shape).astype("float32")
        model.train_on_batch(arrays, target)
        changes = [np.abs(now - then).max() for now, then in zip(layer.get_weights(), before, strict=True)]
        assert np.isfinite(changes).all()
        assert max(changes) > 0
    model.save(path)
    loaded = keras.saving.load_model(path, compile=False)
    assert loaded.get_layer(layer.name).get_config() == layer.get_config()
    one, other = (ops.convert_to_numpy(each(arrays, training=False)) for each in (model, loaded))
    np.testing.assert_array_equal(one, other)


def _call(layer: Any, inputs: dict[str, Any], **how: Any) -> Any:
    first, *others = inputs
    if not isinstance(inputs[first], keras.KerasTensor):
        inputs = tree.map_structure(lambda x: None if x is None else ops.convert_to_tensor(x), inputs)
    if "training" not in inspect.signature(layer.call).parameters:
        how = {}
    return layer(inputs[first], **{name: inputs[name] for name in others}, **how)


def _symbolic(inputs: dict[str, Any]) -> dict[str, Any]:
    """Keras tensors with a batch and a length that are not known."""
    return tree.map_structure(
        lambda x: keras.Input((None, *x.shape[2:]), dtype=keras.backend.standardize_dtype(x.dtype)), inputs
    )
