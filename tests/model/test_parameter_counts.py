"""Table 3's last column, the formula behind it, and tensor2tensor's own counts."""

import functools
import json
from pathlib import Path

import keras
import pytest

from t2t_revival import HParams, Transformer, registry
from t2t_revival.reproduction.table3 import ROWS

VOCAB = 37_000
PRE = {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"}

T2T = json.loads((Path(__file__).parents[1] / "reference" / "param_counts.json").read_text())
OTHER_TARGET_SPACES = 31  # rows of T2T's embedding of the target's kind that a problem has no use for


def formula(h: HParams, vocab: int) -> int:
    """The paper's matrices and vectors, summed; h * d_k and h * d_v are channels of all heads together."""
    d, d_ff, layers = h.hidden_size, h.filter_size, h.num_hidden_layers
    d_k = (h.attention_key_channels or d) // h.num_heads
    d_v = (h.attention_value_channels or d) // h.num_heads
    attention = h.num_heads * (2 * d * d_k + d * d_v) + h.num_heads * d_v * d  # 3.2.2: W^Q, W^K, W^V, W^O
    feed_forward = d * d_ff + d_ff + d_ff * d + d  # equation (2)
    norm = 2 * d
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    final_norms = 2 * norm if h.layer_preprocess_sequence == "n" else 0
    positions = 2 * h.max_length * d if h.pos == "emb" else 0
    embeddings = vocab * d * (1 if h.shared_embedding_and_softmax_weights else 3)  # 3.4
    embeddings += d if h.use_target_space_embedding else 0
    if h.pos == "relative":  # a key and a value of each distance, in each self-attention
        positions = 2 * layers * (2 * h.max_relative_position + 1) * (d_k + d_v)
    return embeddings + positions + layers * (encoder_layer + decoder_layer) + final_norms


@pytest.fixture(scope="module", autouse=True)
def forget_variables():
    yield
    keras.utils.clear_session()


def count(h: HParams) -> int:
    """Counts without filling the weights: only their shapes are made; label smoothing is for the loss."""
    return _count(h.replace(label_smoothing=0.0))


@functools.cache
def _count(h: HParams) -> int:
    with keras.StatelessScope(initialize_variables=False):
        return Transformer(h, VOCAB).count_params()


def test_a_real_base_model_counts_at_once() -> None:
    assert Transformer(registry.hparams("base"), VOCAB).count_params() == 63_045_632


@pytest.mark.parametrize(
    "name", [name for name in registry.list_hparams() if name == "big" or name.startswith("table3_")]
)
def test_counts_follow_the_formula(name: str) -> None:
    h = registry.hparams(name)
    assert count(h) == formula(h, VOCAB)
    pre_norm = h.replace(**PRE, shared_embedding_and_softmax_weights=False)
    assert count(pre_norm) == formula(pre_norm, VOCAB)


def test_a_modern_base_model_has_the_size_of_base() -> None:
    base, modern = (count(registry.hparams(name)) for name in ("base", "base_modern"))
    assert modern == pytest.approx(base, rel=0.0002)


def test_counts_beside_table_3() -> None:
    """The paper does not say its exact vocabulary; 7% is what that leaves open."""
    for name, row in ROWS.items():
        assert count(registry.hparams(name)) / 1e6 == pytest.approx(row.parameters, rel=0.07), name


@pytest.mark.slow
@pytest.mark.nightly
def test_counts_are_those_of_tensor2tensor() -> None:
    assert T2T["vocab"] == VOCAB
    for name, known in T2T["params"].items():
        h = registry.hparams(name)
        ours = count(h)
        assert ours == formula(h, VOCAB), name
        assert ours == known - OTHER_TARGET_SPACES * h.hidden_size, name


def test_every_set_of_tensor2tensor_has_its_count() -> None:
    assert {name for name in registry.list_hparams() if name.startswith("transformer_")} == set(T2T["params"])
