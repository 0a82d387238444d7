"""FLOPs of a training: by formula, counted, and by the paper's rule."""

import pytest

from t2t_revival import HParams
from t2t_revival.reproduction.training_flops import counted_flops, flops_by_time, training_flops

VOCAB = 11


def by_hand(h: HParams, sentences: int, source: int, target: int) -> int:
    """Each product of the model, multiplied out: [a, b] x [b, c] takes 2 a b c, its gradients twice that."""
    d, k, v, f = h.hidden_size, h.key_channels, h.value_channels, h.filter_size
    inner = 2 * f if h.ffn_activation == "swiglu" else f
    encoder_layer = [
        (source, d, k + k + v),  # queries, keys and values
        (source, k, source),  # scores of all heads: h times d_k channels
        (source, source, v),  # weighted values
        (source, v, d),  # output
        (source, d, inner),
        (source, f, d),
    ]
    decoder_layer = [
        (target, d, k + k + v),
        (target, k, target),
        (target, target, v),
        (target, v, d),
        (target, d, k),  # queries to the encoder
        (source, d, k + v),  # its keys and values
        (target, k, source),
        (target, source, v),
        (target, v, d),
        (target, d, inner),
        (target, f, d),
    ]
    products = encoder_layer * h.encoder_layers + decoder_layer * h.decoder_layers + [(target, d, VOCAB)]
    return 3 * 2 * sentences * sum(a * b * c for a, b, c in products)


SETS = {
    "plain": {"num_hidden_layers": 1},
    "modern": {"pos": "rotary", "ffn_activation": "swiglu", "norm_type": "rms"},
    "uneven": {
        "num_encoder_layers": 1,
        "num_decoder_layers": 2,
        "attention_key_channels": 4,
        "attention_value_channels": 12,
        "layer_preprocess_sequence": "n",
        "layer_postprocess_sequence": "da",
        "attention_dropout": 0.1,
        "relu_dropout": 0.1,
    },
}


@pytest.mark.parametrize("changes", SETS.values(), ids=SETS)
def test_the_graph_of_a_training_step_has_the_products_of_the_model(tiny_hparams, changes) -> None:
    hparams = tiny_hparams.replace(**changes)
    expected = by_hand(hparams, 3, 5, 7)
    assert counted_flops(hparams, VOCAB, 5, 7, sentences=3) == expected
    assert training_flops(hparams, VOCAB, [5] * 3, [7] * 3) == expected


def test_what_the_formula_leaves_out_is_counted(tiny_hparams) -> None:
    hparams = tiny_hparams.replace(num_hidden_layers=1, deterministic_attention=True)
    assert counted_flops(hparams, VOCAB, 5, 7, sentences=3) > by_hand(hparams, 3, 5, 7)


def test_sentences_of_other_lengths_add_up(tiny_hparams) -> None:
    expected = by_hand(tiny_hparams, 2, 5, 7) + by_hand(tiny_hparams, 1, 9, 4)
    assert training_flops(tiny_hparams, VOCAB, [5, 9, 5], [7, 4, 7]) == expected


@pytest.mark.parametrize(("hours", "flops"), [(12, 3.3e18), (3.5 * 24, 2.3e19)])
def test_the_paper_s_rule_gives_the_paper_s_figures(hours, flops) -> None:
    # 8 P100 of 9.5 TFLOP/s (section 5.2, footnote 5)
    assert f"{flops_by_time(hours, 8, 9.5e12):.1e}" == f"{flops:.1e}"
