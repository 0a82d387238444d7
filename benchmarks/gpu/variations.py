"""Other ways to compute the same model, which a GPU may prefer: put in place of the project's own.

None changes what is computed, but for rounding and for which elements dropout takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_revival.errors import T2TError
from t2t_revival.model import attention, normalization, regularization
from t2t_revival.training import loss
from t2t_revival.training import model as training_model

OURS = "ours"  # each choice's first value: as the project has it


def fused_attention(implementation: str) -> Callable[..., Any]:
    """`scaled_dot_product_attention` by `jax.nn`: "xla", or "cudnn", which keeps no scores in memory.

    Padding and causality are told by lengths, not by a bias that would be read. Sentences are of full length
    or padded at their end, and attention weights have no dropout.
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
        return jnp.swapaxes(heads, 1, 2)

    return attend


def jax_bytes(generator: str) -> Callable[..., Any]:
    """`random_bytes` from the bits themselves, of which `randint` draws twice as many.

    Args:
        generator: "threefry2x32", which is JAX's own and Keras's, or "rbg", which is the hardware's fastest.
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
    """`linear_cross_entropy` by logits in float32, its gradient derived by the backend."""
    logits = ops.matmul(x, ops.transpose(ops.cast(embeddings, x.dtype)))
    plain = loss.smoothed_cross_entropy(logits, labels, 0.0)
    return loss.smoothed_cross_entropy(logits, labels, label_smoothing), plain


def derived_normalize(x: Any, gamma: Any, beta: Any, epsilon: Any) -> Any:
    """`normalize`, its gradient derived by the backend."""
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
    "norm": {"derived": (normalization, "normalize", lambda: derived_normalize)},
}
JAX_ONLY = ("attention", "random")


def choose(chosen: dict[str, str]) -> None:
    """Puts what is chosen in place, for the rest of this process.

    Args:
        chosen: for each of `CHOICES`, one of its values or `OURS`.

    Raises:
        T2TError: it is written for another backend.
    """
    for name, value in chosen.items():
        if value == OURS:
            continue
        if name in JAX_ONLY and keras.backend.backend() != "jax":
            raise T2TError(f"--{name}={value} is JAX's: set KERAS_BACKEND=jax")
        module, function, make = CHOICES[name][value]
        setattr(module, function, make())
