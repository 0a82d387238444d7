"""`TrainingTransformer`: the logits, loss, gradients and weights of `Transformer`."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import HParams, TokenCrossEntropy, Transformer
from t2t_revival.training.model import TrainingTransformer

VOCAB = 11
IDS = {
    "inputs": np.array([[3, 4, 5, 1], [6, 1, 0, 0]], "int32"),
    "targets": np.array([[7, 8, 1], [9, 1, 0]], "int32"),
}
WEIGHTS = ((IDS["targets"] != 0) / np.float32(5)).astype("float32")


def siblings(hparams: HParams, *num_parallel_batches: int) -> list[Any]:
    """A plain model and a fused one for each number of parts, of the same weights and compiled alike."""
    hparams = hparams.replace(layer_prepostprocess_dropout=0.0, attention_dropout=0.0, relu_dropout=0.0)
    keras.utils.set_random_seed(1)
    plain = Transformer(hparams, VOCAB)
    models = [plain, *(TrainingTransformer(hparams, VOCAB, parts) for parts in num_parallel_batches)]
    for model in models:
        model.set_weights(plain.get_weights())
        model.compile(optimizer=keras.optimizers.SGD(0.5), loss=TokenCrossEntropy(0.1), jit_compile=False)
    return models


def loss_and_gradients(model: Transformer) -> tuple[Any, list[Any]]:
    with tf.GradientTape() as tape:
        loss = model.compute_loss(IDS, IDS["targets"], model(IDS, training=True), WEIGHTS)
    return loss, tape.gradient(loss, [weight.value for weight in model.trainable_variables])


@pytest.mark.parametrize(("shared", "num_parallel_batches"), [(True, 1), (False, 1), (True, 2), (True, 3)])
def test_loss_and_gradients_are_those_of_the_logits(
    tiny_hparams: HParams, shared: bool, num_parallel_batches: int
) -> None:
    """Batches with fewer sentences than parts are included."""
    hparams = tiny_hparams.replace(shared_embedding_and_softmax_weights=shared)
    plain, fused = siblings(hparams, num_parallel_batches)
    assert [w.path for w in fused.weights] == [w.path for w in plain.weights]
    (loss, gradients), (fused_loss, fused_gradients) = loss_and_gradients(plain), loss_and_gradients(fused)
    assert float(fused_loss) == pytest.approx(float(loss), rel=1e-6)
    for got, expected in zip(fused_gradients, gradients, strict=True):
        np.testing.assert_allclose(*map(tf.convert_to_tensor, (got, expected)), atol=2e-6)


def plain_cross_entropy(model: Transformer) -> float:
    """The sum of weighted losses without label smoothing, in NumPy."""
    logits = model(IDS).numpy().astype("float64")
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    right = np.take_along_axis(log_probabilities, IDS["targets"][..., None], -1)[..., 0]
    return -(right * WEIGHTS).sum()


@pytest.mark.slow
def test_fit_and_evaluate(tiny_hparams: HParams) -> None:
    """Steps of `fit`, and the loss that `evaluate` returns, are those of the plain model.

    Plain cross-entropy is measured beside the smoothed loss: by `fit`, of the weights before the update, and
    by `evaluate`.
    """
    models = siblings(tiny_hparams.replace(num_hidden_layers=1), 1, 2)
    data = tf.data.Dataset.from_tensors((IDS, IDS["targets"], WEIGHTS))

    def fit(model: Transformer) -> dict[str, Any]:
        history = model.fit(data, shuffle=False, verbose=0).history
        return {name: values[0] for name, values in history.items()}

    def evaluate(model: Transformer) -> dict[str, Any]:
        return model.evaluate(data, verbose=0, return_dict=True)

    for measure, tolerance in ((fit, 1e-6), (fit, 1e-6), (fit, 1e-6), (evaluate, 1e-5)):
        cross_entropy = plain_cross_entropy(models[0])
        expected, *found = map(measure, models)
        for scores in found:
            assert scores["loss"] == pytest.approx(expected["loss"], rel=tolerance)
            assert scores["cross_entropy"] == pytest.approx(cross_entropy, rel=1e-5)
            assert scores["loss"] != pytest.approx(cross_entropy, rel=1e-2)
    plain, *fused = models
    for model in fused:
        for weight, expected_weight in zip(model.get_weights(), plain.get_weights(), strict=True):
            np.testing.assert_allclose(weight, expected_weight, atol=1e-5)


def test_logits_where_it_does_not_train(tiny_hparams: HParams, tmp_path: Path) -> None:
    plain, fused = siblings(tiny_hparams, 2)
    assert (fused(IDS).numpy() == plain(IDS).numpy()).all()
    parts, _ = fused(IDS, training=True)
    assert [part.shape for part in parts] == [(1, 3, tiny_hparams.hidden_size)] * 2
    fused.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, TrainingTransformer)
    assert loaded.num_parallel_batches == 2
    assert (loaded(IDS).numpy() == plain(IDS).numpy()).all()


@pytest.mark.slow
def test_compiled_metrics_see_logits(tiny_hparams: HParams) -> None:
    """All models report the same accuracy, while training and while evaluating."""
    models = siblings(tiny_hparams.replace(num_hidden_layers=1), 1, 2)
    data = tf.data.Dataset.from_tensors((IDS, IDS["targets"], WEIGHTS)).repeat(2)
    logs = []
    for model in models:
        model.compile(
            optimizer=keras.optimizers.SGD(0.5),
            loss=TokenCrossEntropy(0.1),
            metrics=["sparse_categorical_accuracy"],
            weighted_metrics=[keras.metrics.SparseCategoricalCrossentropy(from_logits=True, name="nll")],
        )
        trained = model.fit(data, shuffle=False, verbose=0).history
        evaluated = model.evaluate(data, verbose=0, return_dict=True)
        logs.append({name: (np.ravel(trained[name])[0], evaluated[name]) for name in trained})
    plain, *fused = logs
    for found in fused:
        assert set(found) - set(plain) == {"cross_entropy"}
        for name, values in plain.items():
            assert found[name] == pytest.approx(values, rel=1e-5)


def test_its_config_keeps_precision_and_parts(tiny_hparams: HParams) -> None:
    model = TrainingTransformer(tiny_hparams, VOCAB, num_parallel_batches=2, dtype="mixed_bfloat16")
    again = TrainingTransformer.from_config(model.get_config())
    assert again.dtype_policy.name == again.encoder.layers[0].dtype_policy.name == "mixed_bfloat16"
    assert again.num_parallel_batches == 2


def test_without_weights_each_token_counts(tiny_hparams: HParams) -> None:
    plain, fused = siblings(tiny_hparams, 1)
    losses = [
        float(model.compute_loss(IDS, IDS["targets"], model(IDS, training=True))) for model in (plain, fused)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)


def test_another_loss_is_refused(tiny_hparams: HParams) -> None:
    _, fused = siblings(tiny_hparams, 1)
    fused.compile(optimizer="sgd", loss="mse")
    with pytest.raises(TypeError, match="TokenCrossEntropy"):
        fused.compute_loss(IDS, IDS["targets"], fused(IDS, training=True), WEIGHTS)
