"""The whole model: its forward pass, what it may not see, steps, saving, precision and names."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from t2t_revival import HParams, Transformer
from t2t_revival.training.model import build_model
from tests.support.numpy_transformer import NumpyTransformer
from tests.support.tiny_models import TINY

pytestmark = pytest.mark.filterwarnings("ignore:You are using a softmax over axis -1")  # a first step
VOCAB = 11
PRE = {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"}
VARIANTS = {
    "post-norm": {},
    "pre-norm": PRE,
    "learned positions": {"pos": "emb", "max_length": 16},
    "three matrices": {"shared_embedding_and_softmax_weights": False},
    "two vocabularies": {"source_vocab_size": 13},
    "two vocabularies, three matrices": {
        "source_vocab_size": 13,
        "shared_embedding_and_softmax_weights": False,
    },
    "deterministic attention": {"deterministic_attention": True, **PRE},
    "restricted attention": {"attention_window": 4},
    "recurrent decoder": {"decoder_self_attention": "ssru"},
    "narrow keys": {"attention_key_channels": 4, "attention_value_channels": 12, **PRE},
}
MARKS = np.zeros((VOCAB, 3), "float32")  # begins a word, ends one, stands for one
MARKS[[1, 5, 6], 0] = MARKS[7, 1] = MARKS[[3, 10], 2] = 1
SOURCE = np.array([[3, 4, 5, 6, 1], [7, 8, 1, 0, 0]], "int32")
TARGETS = np.array([[9, 2, 10, 1], [3, 1, 0, 0]], "int32")
IDS = {"inputs": SOURCE, "targets": TARGETS}


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=VARIANTS.keys())
def model(request: pytest.FixtureRequest) -> Transformer:
    """A model of each kind for all tests, which change none of its weights."""
    changes = dict(request.param)
    source_vocab_size = changes.pop("source_vocab_size", None)
    return make(TINY.replace(**changes), source_vocab_size=source_vocab_size)


@pytest.fixture(scope="module")
def expected(model: Transformer) -> np.ndarray:
    """Logits of `SOURCE` and `TARGETS` by the model."""
    return logits(model, SOURCE, TARGETS)


def make(hparams: HParams, dtype: str = "float32", source_vocab_size: int | None = None) -> Transformer:
    """A model whose norms and biases matter: all weights random."""
    keras.utils.set_random_seed(4)
    target = VOCAB if source_vocab_size else None
    model = Transformer(hparams, source_vocab_size or VOCAB, target_vocab_size=target, dtype=dtype)
    if model.deterministic_attention:
        model.deterministic_attention.token_flags.assign(MARKS)
    rng = np.random.default_rng(4)
    for weight in model.trainable_weights:
        if len(weight.shape) == 1:
            weight.assign(ops.convert_to_numpy(weight) + 0.3 * rng.standard_normal(weight.shape))
    return model


def logits(model: Transformer, source: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return ops.convert_to_numpy(model({"inputs": source, "targets": targets}))


def test_forward_equals_numpy(model: Transformer, expected: np.ndarray) -> None:
    assert expected.shape == (2, 4, VOCAB)
    numpy_model = NumpyTransformer(model)
    for b in range(2):
        np.testing.assert_allclose(expected[b], numpy_model(SOURCE[b], TARGETS[b]), atol=3e-5)


@pytest.fixture(scope="module")
def weights(model: Transformer) -> list[np.ndarray]:
    """Attention weights of `SOURCE` and `TARGETS` by the model."""
    if model.hparams.decoder_self_attention == "ssru":
        pytest.skip("such a decoder has no weights: see tests/model/test_ssru.py")
    return [ops.convert_to_numpy(stack) for stack in model.attention_weights(IDS)]


def test_attention_weights_equal_numpy(model: Transformer, weights: list[np.ndarray]) -> None:
    assert [stack.shape for stack in weights] == [(2, 2, 2, 5, 5), (2, 2, 2, 4, 4), (2, 2, 2, 4, 5)]
    numpy_model = NumpyTransformer(model)
    for b in range(2):
        numpy_model(SOURCE[b], TARGETS[b])
        names = ("encoder/self_attention", "decoder/self_attention", "decoder/encoder_attention")
        for stack, name in zip(weights, names, strict=True):
            np.testing.assert_allclose(stack[b], numpy_model.attended[name], atol=1e-5)


def test_attention_weights_by_layers_of_their_own_and_in_any_precision(tiny_hparams: HParams) -> None:
    hparams = tiny_hparams.replace(num_encoder_layers=3, num_decoder_layers=1)
    model = make(hparams)
    exact = model.attention_weights(IDS)
    assert [stack.shape[1] for stack in exact] == [3, 1, 1]
    rough_model = make(hparams, "mixed_bfloat16")
    rough_model.set_weights(model.get_weights())
    for one, other in zip(exact, rough_model.attention_weights(IDS), strict=True):
        assert keras.backend.standardize_dtype(other.dtype) == "float32"
        np.testing.assert_allclose(ops.convert_to_numpy(one), ops.convert_to_numpy(other), atol=0.05)


@pytest.mark.parametrize("beams", [1, 3])
def test_steps_equal_the_teacher_forced_pass(model: Transformer, beams: int) -> None:
    """Each beam gets targets of its own; the beams of a sentence share its encoding."""
    targets = np.random.default_rng(5).integers(1, VOCAB, (2, beams, 6)).astype("int32")
    state = model.start_decoding(SOURCE, beams)
    last = np.zeros((2, beams), "int32")
    steps = []
    for t in range(6):
        scores, state = model.decode_step(last, t, state)
        assert scores.shape == (2, beams, VOCAB)
        steps.append(ops.convert_to_numpy(scores))
        last = targets[:, :, t]
    teacher_forced = logits(model, np.repeat(SOURCE, beams, axis=0), targets.reshape(2 * beams, 6))
    got = np.stack(steps, axis=2)  # [batch, beams, target, vocab]
    np.testing.assert_allclose(got, teacher_forced.reshape(got.shape), atol=1e-5)


def test_the_vector_of_the_target_space_is_added_at_each_source_position(tiny_hparams: HParams) -> None:
    model = make(
        tiny_hparams.replace(use_target_space_embedding=True, shared_embedding_and_softmax_weights=False)
    )
    vector = np.random.default_rng(6).normal(0, 1, tiny_hparams.hidden_size)
    model.source_positions.target_space.assign(vector)
    after = logits(model, SOURCE, TARGETS)
    model.source_positions.target_space.assign(vector * 0)
    assert (np.abs(logits(model, SOURCE, TARGETS) - after) > 1e-3).any()
    table = ops.convert_to_numpy(model.source_embedding.embeddings)
    model.source_embedding.embeddings.assign(table + vector * tiny_hparams.hidden_size**-0.5)
    np.testing.assert_allclose(logits(model, SOURCE, TARGETS), after, atol=1e-5)


def test_save_and_load_round_trip(model: Transformer, expected: np.ndarray, tmp_path: Path) -> None:
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, Transformer)
    assert loaded.hparams == model.hparams
    np.testing.assert_array_equal(logits(loaded, SOURCE, TARGETS), expected)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16", "bfloat16"])
def test_dtype_and_trainable_survive_saving(tiny_hparams: HParams, tmp_path: Path, dtype: str) -> None:
    model = Transformer(tiny_hparams, VOCAB, dtype=dtype, trainable=False)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert keras.config.dtype_policy().name == "float32"
    for one in (model, loaded):
        assert one.dtype_policy.name == one.decoder.layers[1].feed_forward.dropout.dtype_policy.name == dtype
        assert one.trainable_weights == []
    np.testing.assert_array_equal(logits(loaded, SOURCE, TARGETS), logits(model, SOURCE, TARGETS))


def test_float16_is_close_to_float32_and_a_row_of_padding_is_finite(tiny_hparams: HParams) -> None:
    model = make(tiny_hparams, "mixed_float16")
    expected = np.stack([NumpyTransformer(model)(SOURCE[b], TARGETS[b]) for b in range(2)])
    padded = [np.concatenate([ids, np.zeros_like(ids[:1])]) for ids in (SOURCE, TARGETS)]
    got = model({"inputs": padded[0], "targets": padded[1]})
    assert keras.backend.standardize_dtype(got.dtype) == "float16"
    assert np.abs(tf.cast(got, tf.float64).numpy()[:2] - expected).max() < 0.02
    assert np.isfinite(got).all()


def test_steps_stay_in_bfloat16(tiny_hparams: HParams) -> None:
    """A loop in a graph takes no cache whose type changes after the first step."""
    model = make(tiny_hparams, "mixed_bfloat16")
    state = model.start_decoding(SOURCE, beams=2)
    scores, after = model.decode_step(np.zeros((2, 2), "int32"), 0, state)
    types = {
        keras.backend.standardize_dtype(tensor.dtype)
        for tensor in (
            scores,
            *(t for s in (state, after) for c in (*s.self_caches, *s.encoder_caches) for t in c),
        )
    }
    assert types == {"bfloat16"}
    expected = tf.cast(model(IDS)[:, 0], tf.float32).numpy()
    np.testing.assert_allclose(tf.cast(scores, tf.float32).numpy()[:, 0], expected, atol=0.05)


def test_dropout_is_active_in_training_only(tiny_hparams: HParams) -> None:
    model = make(
        tiny_hparams.replace(layer_prepostprocess_dropout=0.3, attention_dropout=0.1, relu_dropout=0.1)
    )
    still = make(tiny_hparams)
    still.set_weights(model.get_weights())
    np.testing.assert_array_equal(logits(model, SOURCE, TARGETS), logits(still, SOURCE, TARGETS))
    first, second = (ops.convert_to_numpy(model(IDS, training=True)) for _ in range(2))
    assert np.abs(first - second).max() > 0.01


SELF = ["self_attention/query_key_value", "self_attention/output"]
OVER = ["encoder_attention/query", "encoder_attention/key_value", "encoder_attention/output"]
FFN = [f"feed_forward/{name}" for name in ("kernel_1", "bias_1", "kernel_2", "bias_2")]


def norms(*sublayers: str) -> list[str]:
    return [f"{sublayer}_residual/norm/{name}" for sublayer in sublayers for name in ("gamma", "beta")]


GOLDEN = [
    "transformer/target_embedding/embeddings",
    *(
        f"transformer/encoder/layer_0/{name}"
        for name in [*SELF, *FFN, *norms("self_attention", "feed_forward")]
    ),
    *(
        f"transformer/decoder/layer_0/{name}"
        for name in [*SELF, *OVER, *FFN, *norms("self_attention", "encoder_attention", "feed_forward")]
    ),
]
GOLDEN_CHANGES = {
    "paper": ({}, []),
    "pre-norm": (
        PRE,
        [f"transformer/{s}/final_norm/{w}" for s in ("encoder", "decoder") for w in ("gamma", "beta")],
    ),
    "learned positions": (
        {"pos": "emb"},
        [f"transformer/{s}_positions/embeddings" for s in ("source", "target")],
    ),
    "three matrices": (
        {"shared_embedding_and_softmax_weights": False},
        [f"transformer/{s}_embedding/embeddings" for s in ("source", "softmax")],
    ),
}


@pytest.mark.parametrize(("changes", "more"), GOLDEN_CHANGES.values(), ids=GOLDEN_CHANGES.keys())
def test_names_that_checkpoints_rely_on(changes: dict, more: list[str], tiny_hparams: HParams) -> None:
    """A change here makes checkpoints that people have unreadable."""
    keras.utils.clear_session()
    model = Transformer(tiny_hparams.replace(num_hidden_layers=1, **changes), VOCAB)
    assert sorted(w.path for w in model.weights) == sorted(GOLDEN + more)
    second = Transformer(model.hparams, VOCAB)
    assert [w.path for w in second.weights] == [w.path for w in model.weights]


def test_two_vocabularies_of_equal_size_are_two() -> None:
    model = Transformer(TINY, 11, target_vocab_size=11)
    assert model.source_embedding is not model.target_embedding
    again = Transformer.from_config(model.get_config())
    assert again.count_params() == model.count_params()


def test_the_loss_is_over_the_targets_vocabulary() -> None:
    """A target id that the source's vocabulary has not, and the other way round."""
    hparams = TINY.replace(layer_prepostprocess_dropout=0.0, label_smoothing=0.0)
    model = build_model(hparams, 4, target_vocab_size=9)
    source, targets = np.array([[3, 1]], "int32"), np.array([[8, 1]], "int32")
    inputs = {"inputs": source, "targets": targets}
    logits = ops.convert_to_numpy(model(inputs)).astype("float64")[0]
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    ones = np.ones((1, 2), "float32")
    loss, _ = model.token_losses(inputs, targets, model(inputs, training=True), ones)
    np.testing.assert_allclose(float(loss), -(log_probs[0, 8] + log_probs[1, 1]), rtol=1e-4)
