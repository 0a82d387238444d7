"""Run by test_optimizer.py: the same two steps on one device and mirrored over two."""

import keras
import numpy as np
import tensorflow as tf

from t2t_revival.hparams import HParams
from t2t_revival.training.compile import build_model, compile_model

H = HParams(
    num_hidden_layers=1,
    hidden_size=8,
    filter_size=16,
    num_heads=2,
    layer_prepostprocess_dropout=0.0,
    learning_rate_warmup_steps=10,
)


def trained(strategy: tf.distribute.Strategy, start: list[np.ndarray] | None) -> tuple[list, list]:
    """Weights before and after two steps over a batch whose halves have unequal numbers of tokens."""
    rng = np.random.default_rng(1)
    ids = rng.integers(1, 11, (8, 5)).astype("int32")
    ids[:2, 2:] = 0
    mask = (ids != 0).astype("float32").reshape(2, 4, 5)
    weights = (mask / mask.sum(axis=(1, 2), keepdims=True)).reshape(8, 5)
    with strategy.scope():
        model = build_model(H, 11)
        if start:
            model.set_weights(start)
        compile_model(model, H)
    before = model.get_weights()
    data = tf.data.Dataset.from_tensor_slices(({"inputs": ids, "targets": ids}, ids, weights)).batch(4)
    model.fit(data, verbose=0)
    return before, model.get_weights()


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    keras.utils.set_random_seed(1)
    before, alone = trained(tf.distribute.get_strategy(), None)
    mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    _, together = trained(mirrored, before)
    for a, b, c in zip(alone, together, before, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
        assert (a != c).any()
    print("replicas", mirrored.num_replicas_in_sync)


if __name__ == "__main__":
    main()
