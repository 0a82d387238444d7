"""FLOPs of a training by formula, from its graph and by the paper's rule, and the FLOP/s of this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from t2t_revival.data.workers import cores
from t2t_revival.hparams import HParams
from t2t_revival.hparams.variants import FEED_FORWARDS

if TYPE_CHECKING:
    import tensorflow as tf

FORWARD_AND_BACKWARD = 3  # a product's gradients are two products of its size
MULTIPLY_ADD = 2
RATE_ROUNDS = 20


def training_flops(
    hparams: HParams, vocab_size: int, sources: Sequence[float], targets: Sequence[float]
) -> float:
    """Returns the FLOPs of the matrix products of an update, forward and backward, by formula.

    Full attention without relative positions; embeddings, norms, dropout, residuals, softmax and Adam are not
    counted. Decoder self-attention is counted over all pairs of positions, as it is computed, though half are
    masked. Sources and targets are given as the length of each sentence in tokens.
    """
    lengths = np.asarray(sources, float), np.asarray(targets, float)
    source, target = (side.sum() for side in lengths)
    key, value, hidden = hparams.key_channels, hparams.value_channels, hparams.hidden_size
    projections = 2 * hidden * (key + value)  # W^Q, W^K, W^V and W^O (section 3.2.2)
    is_gated = FEED_FORWARDS[hparams.ffn_activation].is_gated
    networks = [
        (3 if is_gated else 2) * hidden * channels  # section 3.3
        for channels in (hparams.filter_size, hparams.decoder_channels)
    ]
    pair = key + value  # of one query and one memory position: a score, and its share of the value
    encoder = source * (projections + networks[0]) + (lengths[0] ** 2).sum() * pair
    decoder = target * (projections * 1.5 + networks[1]) + source * projections / 2
    decoder += (lengths[1] * (lengths[0] + lengths[1])).sum() * pair
    layers = hparams.encoder_layers * encoder + hparams.decoder_layers * decoder
    return float(FORWARD_AND_BACKWARD * MULTIPLY_ADD * (layers + target * hidden * vocab_size))


def counted_flops(hparams: HParams, vocab_size: int, source: int, target: int, sentences: int = 1) -> int:
    """Returns the FLOPs of the matrix products of an update, counted from the graph of the training step.

    The update has `sentences` pairs, each of `source` and `target` tokens.
    """
    import tensorflow as tf

    from t2t_revival.reproduction.operation_counts import count
    from t2t_revival.training.model import build_model

    model = build_model(hparams, vocab_size)

    def gradients(source: tf.Tensor, targets: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            ids = {"inputs": source, "targets": targets}
            loss, _ = model.token_losses(ids, targets, model(ids, training=True), tf.ones(targets.shape))
        return tape.gradient(loss, [variable.value for variable in model.trainable_variables])

    specs = [tf.TensorSpec((sentences, length), tf.int32) for length in (source, target)]
    return count(tf.function(gradients).get_concrete_function(*specs)).operations


def flops_by_time(hours: float, devices: int, rate: float) -> float:
    """Returns the paper's estimate: training time x devices x FLOP/s that a device sustains (section 6.1)."""
    return hours * 3600 * devices * rate


def sustained_rate(size: int) -> float:
    """Returns the FLOP/s of this machine in float32 products of [size, size] matrices.

    One product per core, or one on a GPU, at a time; the quickest of `RATE_ROUNDS` rounds, since other work
    on the machine only slows one down.
    """
    import tensorflow as tf

    products = 1 if tf.config.list_physical_devices("GPU") else cores()
    matrices = [tf.random.stateless_normal((size, size), seed=(1, i)) for i in range(products)]
    multiply = tf.function(lambda matrices: [tf.matmul(matrix, matrix) for matrix in matrices])
    times = []
    for _ in range(RATE_ROUNDS):
        start = time.perf_counter()
        multiply(matrices)
        tf.test.experimental.sync_devices()
        times.append(time.perf_counter() - start)
    return products * 2 * size**3 / min(times)


def device_name() -> str:
    """Returns the name of the first GPU, or a description of the CPU."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        return str(tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU"))
    threads = tf.config.threading.get_intra_op_parallelism_threads() or cores()
    return f"CPU, {cores()} cores, {threads} for one operation"
