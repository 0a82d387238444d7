"""Other implementations of parts of the model, which may be faster on a GPU.

Results differ only by rounding and by the elements that dropout zeroes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_revival import T2TError
from t2t_revival.model import attention, residual
from t2t_revival.model import dropout as regularization
from t2t_revival.training import loss
from t2t_revival.training import model as training_model

OURS = "ours"  # first value of each choice: the project's implementation


def fused_attention(implementation: str) -> Callable[..., Any]:
    """Returns `scaled_dot_product_attention` by `jax.nn`: "xla", or "cudnn", which does not store scores.

    Attention scores are not returned.

    Masks are given as lengths instead of a bias, so padding must be at the end. Attention weights have no
    dropout.
    """
    import jax
    import jax.numpy as jnp

    def attend(
        query: Any, key: Any, value: Any, bias: Any = None, dropout: Any = None, training: bool = False
    ) -> Any:
        if dropout is not None and dropout.rate:
            raise T2TError(f"--attention={implementation} has no dropout: --hparams=attention_dropout=0")
        causal = bias.shape[2] > 1
        lengths = None if causal else jnp.sum(bias[:, 0, 0] == 0, axis=-1).astype("int32")
        heads = jax.nn.dot_product_attention(
            *(jnp.swapaxes(side, 1, 2) for side in (query, key, value)),  # [batch, length, heads, channels]
            is_causal=causal,
            key_value_seq_lengths=lengths,
            implementation=implementation,
        )
        return jnp.swapaxes(heads, 1, 2), None

    return attend


def jax_bytes(generator: str) -> Callable[..., Any]:
    """Returns `random_bytes` from raw bits; `randint` draws twice as many.

    Args:
        generator: "threefry2x32", the default of JAX and Keras, or "rbg", the fastest in hardware.
    """
    import jax
    import jax.numpy as jnp

    def random_bytes(shape: Any, seed: keras.random.SeedGenerator) -> Any:
        *rows, channels = shape
        state = seed.next()  # uint32 [2]
        words = jnp.concatenate([state, state]) if generator == "rbg" else state
        key = jax.random.wrap_key_data(words, impl=generator)
        bits = jax.random.bits(key, (*rows, (channels + 3) // 4), "uint32")
        levels = jax.lax.bitcast_convert_type(bits, jnp.int8)  # [..., groups, 4]
        return jnp.reshape(levels, (*rows, -1))[..., :channels]

    return random_bytes


def cross_entropy_of_logits(x: Any, embeddings: Any, labels: Any, label_smoothing: float) -> Any:
    """Computes `linear_cross_entropy` from float32 logits, with automatic differentiation."""
    logits = ops.matmul(x, ops.transpose(ops.cast(embeddings, x.dtype)))
    plain = loss.smoothed_cross_entropy(logits, labels, 0.0)
    return loss.smoothed_cross_entropy(logits, labels, label_smoothing), plain


def derived_normalize(x: Any, gamma: Any, beta: Any, epsilon: Any) -> Any:
    """Computes `normalize` with automatic differentiation."""
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    scale = ops.rsqrt(ops.mean(centred * centred, axis=-1, keepdims=True) + epsilon)
    return centred * scale * gamma + beta


CHOICES: dict[str, dict[str, tuple[Any, str, Callable[[], Any]]]] = {
    "attention": {
        "xla": (attention, "scaled_dot_product_attention", lambda: fused_attention("xla")),
        "cudnn": (attention, "scaled_dot_product_attention", lambda: fused_attention("cudnn")),
    },
    "random": {
        "bits": (regularization, "random_bytes", lambda: jax_bytes("threefry2x32")),
        "rbg": (regularization, "random_bytes", lambda: jax_bytes("rbg")),
    },
    "loss": {"logits": (training_model, "linear_cross_entropy", lambda: cross_entropy_of_logits)},
    "norm": {"derived": (residual, "normalize", lambda: derived_normalize)},
}
JAX_ONLY = ("attention", "random")


def choose(chosen: dict[str, str]) -> None:
    """Replaces the project's implementations for the rest of this process.

    Args:
        chosen: one of the values, or `OURS`, for each of `CHOICES`.

    Raises:
        T2TError: the implementation is for another backend.
    """
    for name, value in chosen.items():
        if value == OURS:
            continue
        if name in JAX_ONLY and keras.backend.backend() != "jax":
            raise T2TError(f"--{name}={value} needs JAX: set KERAS_BACKEND=jax")
        module, function, make = CHOICES[name][value]
        setattr(module, function, make())
