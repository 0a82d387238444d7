"""Contestant: OpenNMT-tf's own Transformer, inputters, optimizer and trainer."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import opennmt
import tensorflow as tf
from batches import EOS, FIRST_TOKEN, PAD, Batch
from contestant import Config, Contestant, serve
from opennmt.training import Trainer, TrainingStats

SPEC = {"tokens": tf.TensorSpec([None, None], tf.string), "length": tf.TensorSpec([None], tf.int32)}


def tokens_of(ids: np.ndarray) -> dict[str, np.ndarray]:
    """Converts ids [sentences, length] to OpenNMT-tf's tokens, without EOS, which it adds."""
    names = np.char.add(b"t", ids.astype("S"))
    names[(ids == PAD) | (ids == EOS)] = b"<blank>"
    return {"tokens": names[:, :-1], "length": (ids > EOS).sum(axis=1).astype(np.int32)}


def make_model(config: Config, folder: Path) -> opennmt.models.Transformer:
    """Returns the model with its vocabulary file in `folder` and its training parameters."""
    vocabulary = folder / "vocabulary.txt"
    tokens = [f"t{i}" for i in range(FIRST_TOKEN, config.vocab_size)]
    vocabulary.write_text("".join(f"{token}\n" for token in ("<blank>", "<s>", "</s>", *tokens)))
    model = opennmt.models.Transformer(
        num_layers=config.layers,
        num_units=config.hidden_size,
        num_heads=config.heads,
        ffn_inner_dim=config.filter_size,
        dropout=config.dropout,
        attention_dropout=config.inner_dropout,
        ffn_dropout=config.inner_dropout,
        pre_norm=False,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
    )
    data = {
        "source_vocabulary": str(vocabulary),
        "target_vocabulary": str(vocabulary),
        "source_sequence_controls": {"start": False, "end": True},
    }
    schedule = {"model_dim": config.hidden_size, "warmup_steps": config.learning_rate_warmup_steps}
    params = {
        "optimizer": "LazyAdam",
        "optimizer_params": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
        "learning_rate": config.learning_rate_constant,
        "decay_type": "NoamDecay",
        "decay_params": schedule,
        "label_smoothing": config.label_smoothing,
        "average_loss_in_time": True,
    }
    model.initialize(data, params)
    return model


def build(config: Config, batches: list[Batch]) -> Contestant:
    tf.keras.utils.set_random_seed(config.seed)
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(config, Path(folder))
    inputter = model.examples_inputter
    model.build(None)

    def features(source: dict[str, Any], target: dict[str, Any]) -> Any:
        return inputter.make_features(features=(source, target), training=True)

    def pairs() -> Iterator[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
        return ((tokens_of(batch.inputs), tokens_of(batch.targets)) for batch in batches)

    dataset = tf.data.Dataset.from_generator(pairs, output_signature=(SPEC, SPEC)).map(features).prefetch(2)
    trainer = Trainer(model, model.get_optimizer())
    trainer._training_stats = TrainingStats(model, trainer._optimizer)
    steps = trainer._steps(dataset)  # what Trainer.__call__ iterates over

    @tf.function(input_signature=dataset.element_spec)
    def cross_entropy(source: Any, target: Any) -> Any:
        encoded, state, lengths = model.encoder(
            model.features_inputter(source), sequence_length=model.features_inputter.get_length(source)
        )
        logits = model._decode_target(target, encoded, state, lengths)["logits"]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(target["ids_out"], logits)
        return tf.reduce_sum(losses * tf.sequence_mask(target["length"], dtype=losses.dtype))

    def held_out_loss(batch: Batch) -> float:
        sides = (tf.nest.map_structure(tf.constant, tokens_of(ids)) for ids in batch)
        return float(cross_entropy(*features(*sides)))

    first = next(iter(dataset.take(1)))
    model(*first, training=True)  # makes the weights
    return Contestant(
        name=f"OpenNMT-tf {opennmt.__version__}, TensorFlow {tf.__version__}",
        parameters=int(sum(np.prod(weight.shape) for weight in model.trainable_weights)),
        step=lambda: next(steps),
        held_out_loss=held_out_loss,
    )


if __name__ == "__main__":
    serve(build)
