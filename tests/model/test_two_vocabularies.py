"""A model whose source and target have a vocabulary each."""

from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

from t2t_revival.model import Transformer
from t2t_revival.training.compile import build_model, compile_model
from tests.support.numpy_transformer import NumpyTransformer
from tests.support.tiny_models import TINY

SOURCE_SIZE, TARGET_SIZE = 11, 7
SOURCE = np.array([[3, 4, 10, 6, 1], [7, 8, 1, 0, 0]], "int32")
TARGETS = np.array([[5, 2, 6, 1], [3, 1, 0, 0]], "int32")
IDS = {"inputs": SOURCE, "targets": TARGETS}
TABLES = {
    True: {"source_embedding": SOURCE_SIZE, "target_embedding": TARGET_SIZE},
    False: {
        "source_embedding": SOURCE_SIZE,
        "target_embedding": TARGET_SIZE,
        "softmax_embedding": TARGET_SIZE,
    },
}


def make(tied: bool, target_size: int = TARGET_SIZE) -> Transformer:
    keras.utils.set_random_seed(4)
    hparams = TINY.replace(shared_embedding_and_softmax_weights=tied)
    return Transformer(hparams, SOURCE_SIZE, target_vocab_size=target_size)


@pytest.mark.parametrize("tied", [True, False])
def test_each_embedding_has_the_rows_of_its_vocabulary(tied: bool) -> None:
    model = make(tied)
    tables = {w.path.split("/")[1]: w.shape for w in model.weights if w.path.endswith("/embeddings")}
    assert tables == {name: (rows, TINY.hidden_size) for name, rows in TABLES[tied].items()}


def test_two_vocabularies_of_equal_size_are_two() -> None:
    model = make(True, SOURCE_SIZE)
    assert model.source_embedding is not model.target_embedding
    again = Transformer.from_config(model.get_config())
    assert again.count_params() == model.count_params()


def test_one_vocabulary_has_the_weights_and_the_config_that_it_had() -> None:
    model = Transformer(TINY, SOURCE_SIZE)
    assert [w.path for w in model.weights if "embedding" in w.path] == [
        "transformer/target_embedding/embeddings"
    ]
    assert "target_vocab_size" not in model.get_config()


@pytest.mark.parametrize("tied", [True, False])
def test_forward_equals_numpy(tied: bool) -> None:
    model = make(tied)
    found = ops.convert_to_numpy(model(IDS))
    assert found.shape == (2, 4, TARGET_SIZE)
    assert model.compute_output_spec({"targets": keras.KerasTensor((2, 4))}).shape == found.shape
    numpy_model = NumpyTransformer(model)
    for logits, *ids in zip(found, SOURCE, TARGETS, strict=True):
        np.testing.assert_allclose(logits, numpy_model(*ids), atol=3e-5)


def test_steps_equal_the_whole() -> None:
    model = make(True)
    expected = ops.convert_to_numpy(model(IDS))
    state = model.start_decoding(SOURCE)
    for position in range(TARGETS.shape[1]):
        last = TARGETS[:, position - 1 : position] if position else np.zeros((2, 1), "int32")
        logits, state = model.decode_step(last, position, state)
        np.testing.assert_allclose(ops.convert_to_numpy(logits)[:, 0], expected[:, position], atol=3e-5)


def test_save_and_load_round_trip(tmp_path: Path) -> None:
    model = make(True)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(*(ops.convert_to_numpy(each(IDS)) for each in (loaded, model)))


def test_the_loss_is_over_the_targets_vocabulary() -> None:
    """Trains one step on a target id that the source's vocabulary has not, and the other way round."""
    hparams = TINY.replace(layer_prepostprocess_dropout=0.0, label_smoothing=0.0)
    model = compile_model(build_model(hparams, 4, target_vocab_size=9), hparams)
    source, targets = np.array([[3, 1]], "int32"), np.array([[8, 1]], "int32")
    inputs = {"inputs": source, "targets": targets}
    logits = ops.convert_to_numpy(model(inputs)).astype("float64")[0]
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    loss = model.train_on_batch(inputs, targets, np.ones((1, 2), "float32"))
    np.testing.assert_allclose(np.ravel(loss)[0], -(log_probs[0, 8] + log_probs[1, 1]), rtol=1e-4)
