"""The loss in blocks has the logits of one block in memory; test_jax_engine.py compares trainings with it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(not find_spec("jax"), reason="needs JAX")]


def loss_sums(x: Any, embeddings: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
    """Cross-entropy, and how often the label has the largest score."""
    import jax
    import jax.numpy as jnp

    logits = x @ embeddings.T
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]
    return -jnp.sum(picked * weights), jnp.sum((jnp.argmax(logits, axis=1) == labels) * weights)


def test_logits_of_one_block_are_in_memory() -> None:
    """XLA's own estimate of temporary memory, with a vocabulary next to which all else is small."""
    import jax
    from jax.sharding import Mesh

    from t2t_revival.training.engines.jax_update import in_blocks

    tokens, vocab, hidden, size = 512, 4096, 4, 64
    mesh = Mesh(np.array(jax.devices()[:1]), ("batch",))
    shapes = [
        jax.ShapeDtypeStruct(shape, dtype)
        for shape, dtype in (
            ((tokens, hidden), "float32"),
            ((vocab, hidden), "float32"),
            ((tokens,), "int32"),
            ((tokens,), "float32"),
        )
    ]

    def temporary(function: Any) -> int:
        gradient = jax.jit(jax.grad(lambda *arguments: function(*arguments)[0], argnums=(0, 1)))
        return gradient.lower(*shapes).compile().memory_analysis().temp_size_in_bytes

    logits = 4 * tokens * vocab
    assert temporary(loss_sums) > logits
    assert temporary(in_blocks(loss_sums, mesh, size)) < logits / 2
