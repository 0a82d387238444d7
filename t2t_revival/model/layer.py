"""The base classes of all layers here, and an initializer."""

from typing import Any

import keras
from keras import ops

from t2t_revival.utils.keras_hooks import build_sublayers


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

    def build(self, input_shape: Any = None) -> None:
        """Builds the sub-layers."""
        build_sublayers(self)


class SequenceLayer(Layer):
    """A layer whose output has the shape of its input, [batch, length, hidden]."""

    def compute_output_spec(self, x: Any, *args: Any, **how: Any) -> Any:
        """Returns shape and type of the output.

        Keras would trace `call`, which fails under JAX where a shape depends on an unknown length.
        """
        if how.get("return_attention_scores"):
            return super().compute_output_spec(x, *args, **how)
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype)


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
