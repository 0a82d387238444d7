"""The base classes of all layers here, the sizes of a stack's layers, and an initializer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

import keras
from keras import ops

from t2t_revival.utils.keras_hooks import build_sublayers


@dataclass(frozen=True)
class LayerConfig:
    """Sizes and kinds of the layers of encoder and decoder; by default those of the paper, without dropout.

    Attributes:
        num_heads: h, heads of each attention.
        hidden_size: d_model, channels of inputs and outputs.
        filter_size: d_ff, channels of the feed-forward network's inner layer.
        dropout: probability, on the output of each sub-layer.
        key_channels: h * d_k, channels of the keys of all heads together; `None` uses `hidden_size`.
        value_channels: h * d_v, likewise.
        attention_dropout: probability, on attention weights.
        relu_dropout: probability, inside the feed-forward network.
        ffn_activation: of the feed-forward network; see `variants.FEED_FORWARDS`.
        pre_norm: whether norms come before sub-layers (T2T v2, v3), not after them (the paper).
        norm_type: of all norms; see `variants.NORMS`.
        norm_epsilon: added to the variance in normalisation.
        pos: how positions are told; see `variants.POSITIONS`.
        max_relative_position: distance from which on relative positions are alike, positions.
        projection_bias: whether the projections of attention add a bias.
        attention_window: r of restricted self-attention (section 4), positions; 0 shows all.
        decoder_self_attention: "attention", or "ssru" for a recurrent unit in its place.
    """

    num_heads: int = 8
    hidden_size: int = 512
    filter_size: int = 2048
    dropout: float = 0.0
    key_channels: int | None = None
    value_channels: int | None = None
    attention_dropout: float = 0.0
    relu_dropout: float = 0.0
    ffn_activation: str = "relu"
    pre_norm: bool = False
    norm_type: str = "layer"
    norm_epsilon: float = 1e-6
    pos: str = "sinusoid"
    max_relative_position: int = 20
    projection_bias: bool = False
    attention_window: int = 0
    decoder_self_attention: str = "attention"


_initializer: ContextVar[Any] = ContextVar("the initializer of all weights", default=None)


@contextmanager
def weights_made_by(initializer: Any) -> Iterator[None]:
    """Has one initializer make all weights of the block, such as those that a checkpoint is to replace."""
    token = _initializer.set(initializer)
    try:
        yield
    finally:
        _initializer.reset(token)


class Layer(keras.layers.Layer):
    """A Keras layer whose arguments are plain values, of which Keras makes `get_config`.

    Building it builds its sub-layers, so that all weights exist and are named after it. Keras's masks of
    sequences pass through it.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Hides from Keras, which collects the arguments here, a policy: that one `get_config` has anyway."""
        return super().__new__(cls, *args, **{**kwargs, "dtype": None})

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def add_weight(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a weight as Keras does; see `weights_made_by`."""
        if initializer := _initializer.get():
            kwargs["initializer"] = initializer
        return super().add_weight(*args, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        """Builds the sub-layers."""
        build_sublayers(self)


class ConfiguredLayer(Layer):
    """A layer, or a stack, of a `LayerConfig`, whose output has the shape of its input, [..., hidden].

    Args:
        config: sizes and kinds.
    """

    def __init__(self, config: LayerConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config

    def compute_output_spec(self, x: Any, *inputs: Any, **options: Any) -> Any:
        """Returns shape and type of the output.

        Keras would trace `call`, which fails under JAX where a shape depends on an unknown length.
        """
        if options.get("return_attention_scores"):
            return super().compute_output_spec(x, *inputs, **options)
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "config": asdict(self.config)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> ConfiguredLayer:
        return cls(**{**config, "config": LayerConfig(**config["config"])})


class SideBySide(keras.initializers.Initializer):
    """Initialises several matrices side by side in one, each as Glorot's uniform would if it stood alone.

    Args:
        columns: of each matrix.
    """

    def __init__(self, columns: tuple[int, ...]) -> None:
        self.columns = columns
        self._parts = [keras.initializers.GlorotUniform() for _ in columns]

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """Returns the matrix of a shape, [rows, sum of columns]."""
        matrices = [
            part((shape[0], size), dtype=dtype) for part, size in zip(self._parts, self.columns, strict=True)
        ]
        return ops.concatenate(matrices, axis=1)

    def get_config(self) -> dict[str, Any]:
        return {"columns": self.columns}
