"""Contestant: this project's model, compiled by its trainer's functions, with its training step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from batches import PAD, Batch
from contestant import Config, Contestant, serve
from hparams_of import hparams_of

from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.training.engines.tensorflow_engine import make_step
from t2t_revival.training.model import build_model, compile_model

IDS = tf.TensorSpec([None, None], tf.int32)
SPEC = ({"inputs": IDS, "targets": IDS}, IDS, tf.TensorSpec([None, None], tf.float32))


def example(batch: Batch) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Returns inputs, labels and weights of the labels, as `t2t_revival.data.batching` does."""
    weights = (batch.targets != PAD) / np.float32(batch.target_tokens)
    return batch._asdict(), batch.targets, weights.astype(np.float32)


def build(config: Config, batches: list[Batch]) -> Contestant:
    keras.utils.set_random_seed(config.seed)
    hparams = hparams_of(config)
    precision = "float32" if config.precision == "float32" else "mixed_bfloat16"
    num_parallel_batches = tensorflow_setup.num_training_parts(
        max(side.size for batch in batches for side in batch)
    )
    model = compile_model(build_model(hparams, config.vocab_size, precision, num_parallel_batches), hparams)

    def examples() -> Iterator[Any]:
        return (example(batch) for batch in itertools.cycle(batches))

    waiting = iter(tf.data.Dataset.from_generator(examples, output_signature=SPEC).prefetch(2))
    step = make_step(model, tf.distribute.get_strategy())

    @tf.function(input_signature=[SPEC[0]])
    def cross_entropy(ids: dict[str, Any]) -> Any:
        logits = tf.cast(model(ids, training=False), tf.float32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(ids["targets"], logits)
        return tf.reduce_sum(losses * tf.cast(ids["targets"] != PAD, tf.float32))

    return Contestant(
        name=f"t2t_revival, Keras {keras.__version__}, TensorFlow {tf.__version__}",
        parameters=model.count_params(),
        step=lambda: step(waiting).loss,
        held_out_loss=lambda batch: float(cross_entropy(example(batch)[0])),
    )


if __name__ == "__main__":
    serve(build)
