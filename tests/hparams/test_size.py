"""The number of weights that `--registry_help` prints."""

import pytest

from t2t_revival import HParams, Transformer, registry
from t2t_revival.hparams.size import count_weights
from tests.support.tiny_models import TINY, VARIATIONS

MORE = {
    "ssru": {"decoder_self_attention": "ssru"},
    "two matrices": {"shared_embedding_and_softmax_weights": False},
    "learned positions": {"pos": "emb"},
    "channels": {"attention_key_channels": 4, "attention_value_channels": 6},
    "layers": {"num_encoder_layers": 3, "num_decoder_layers": 1},
    "deterministic": {"deterministic_attention": True},
    "decoder's network": {"decoder_filter_size": 5},
}


@pytest.mark.parametrize("name", ["paper", *VARIATIONS, *MORE])
def test_it_is_that_of_the_model(name: str) -> None:
    hparams = TINY.replace(**(VARIATIONS | MORE).get(name, {}))
    assert count_weights(hparams, 80) == Transformer(hparams, 80).count_params()


@pytest.mark.parametrize(
    "changes", [{}, {"shared_embedding_and_softmax_weights": False, "softmax_bias": True}]
)
def test_two_vocabularies(changes: dict) -> None:
    hparams = TINY.replace(**changes)
    made = Transformer(hparams, 80, target_vocab_size=90)
    assert count_weights(hparams, 80, 90) == made.count_params()


@pytest.mark.parametrize("name", ["tiny", "small", "transformer_relative_tiny"])
def test_sets(name: str) -> None:
    assert (
        count_weights(registry.hparams(name), 800) == Transformer(registry.hparams(name), 800).count_params()
    )


def test_the_papers_own_figures() -> None:
    """Table 3: 65 million of base and 213 of big, with 37,000 tokens."""
    assert round(count_weights(HParams(), 37_000) / 1e6) in (63, 64, 65)
    assert round(count_weights(registry.hparams("big"), 37_000) / 1e6) in range(209, 215)
