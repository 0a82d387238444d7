"""Contestant of decode_speed.py: tensor2tensor 1.15's own Transformer and beam search.

Ids in, ids out: tensor2tensor has no SentencePiece, so its time excludes text processing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from tensor2tensor.data_generators import problem_hparams
from tensor2tensor.models import transformer
from translating import (
    ALPHA,
    BEAM_SIZE,
    EXTRA_TOKENS,
    ids_of,
    in_batches,
    line_of,
    padded,
    serve,
    tokens_in,
)
from weights import read_weights

if TYPE_CHECKING:
    from translating import Translate

EMBEDDINGS = {
    "source_embedding": "input_emb",
    "target_embedding": "target_emb",
    "softmax_embedding": "softmax",
}
SUB_LAYERS = {
    "self_attention": "self_attention",
    "encoder_attention": "encdec_attention",
    "feed_forward": "ffn",
}
WEIGHTS = {
    "query": "multihead_attention/q/kernel",
    "key": "multihead_attention/k/kernel",
    "value": "multihead_attention/v/kernel",
    "output": "multihead_attention/output_transform/kernel",
    "kernel_1": "conv1/kernel",
    "bias_1": "conv1/bias",
    "kernel_2": "conv2/kernel",
    "bias_2": "conv2/bias",
}
NORM = {"gamma": "layer_norm/layer_norm_scale", "beta": "layer_norm/layer_norm_bias"}


def engine(folder: Path, num_parallel_batches: int, beam_size: int = BEAM_SIZE) -> Translate:
    """Returns one graph and session, called by one thread per parallel batch."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    settings, weights = read_weights(folder)
    hparams = make_hparams(settings, len(weights["source_positions"]))
    vocab_size = settings["vocab_size"]
    problem = problem_hparams.test_problem_hparams(vocab_size, vocab_size, hparams)
    model = transformer.Transformer(hparams, tf.estimator.ModeKeys.PREDICT, problem)
    inputs = tf.placeholder(tf.int32, [None, None, 1, 1])
    features = {"inputs": inputs, "target_space_id": tf.constant(0)}
    outputs = model.infer(features, EXTRA_TOKENS, beam_size=beam_size, alpha=ALPHA)["outputs"]
    session = tf.Session(
        config=tf.ConfigProto(
            intra_op_parallelism_threads=1, inter_op_parallelism_threads=num_parallel_batches
        )
    )
    assign(session, {variable_name(name, settings): weight for name, weight in weights.items()})

    def ask(lines: list[str]) -> list[str]:
        rows = padded([ids_of(line) for line in lines])
        return [line_of(row) for row in session.run(outputs, {inputs: rows[:, :, None, None]}).tolist()]

    return lambda lines, batch: in_batches(lines, batch, num_parallel_batches, ask, tokens_in)


def make_hparams(settings: dict[str, Any], positions: int) -> Any:
    """Returns T2T's hyperparameters of a model.

    Positions are a table of "learned" ones, since T2T's sinusoids are of one kind only. There is no
    target-space embedding, and the embedding matrix is one shard, since shards are concatenated again at each
    step.

    Args:
        settings: of the model.
        positions: length of its position tables.
    """
    hparams = transformer.transformer_base()
    hparams.num_encoder_layers = settings["encoder_layers"]
    hparams.num_decoder_layers = settings["decoder_layers"]
    hparams.hidden_size = settings["hidden_size"]
    hparams.filter_size = settings["filter_size"]
    hparams.num_heads = settings["num_heads"]
    hparams.attention_key_channels = settings["key_channels"]
    hparams.attention_value_channels = settings["value_channels"]
    hparams.shared_embedding_and_softmax_weights = settings["shared_embedding_and_softmax_weights"]
    hparams.layer_preprocess_sequence = "n" if settings["pre_norm"] else "none"
    hparams.layer_postprocess_sequence = "da" if settings["pre_norm"] else "dan"
    hparams.norm_epsilon = settings["norm_epsilon"]
    hparams.pos = "emb"
    hparams.max_length = positions
    hparams.use_target_space_embedding = False
    hparams.symbol_modality_num_shards = 1
    return hparams


def variable_name(name: str, settings: dict[str, Any]) -> str:
    """Returns T2T's variable for an array of weights.py."""
    body = "transformer/body/"
    if name in EMBEDDINGS:
        scope = "shared" if settings["shared_embedding_and_softmax_weights"] else EMBEDDINGS[name]
        sizes = "{vocab_size}_{hidden_size}".format(**settings)
        return f"transformer/symbol_modality_{sizes}/{scope}/weights_0"
    if name.endswith("_positions"):
        return body + ("inputs" if name.startswith("source") else "targets") + "_positional_embedding"
    side, layer, rest = name.split("/", 2)
    if layer == "final":
        return f"{body}{side}/layer_prepostprocess/{NORM[rest]}"
    sub_layer, weight = rest.split("/")
    norm = "layer_prepostprocess" if settings["pre_norm"] else "layer_postprocess"
    place = f"{norm}/{NORM[weight]}" if weight in NORM else WEIGHTS[weight]
    return f"{body}{side}/layer_{layer}/{SUB_LAYERS[sub_layer]}/{place}"


def assign(session: Any, values: dict[str, np.ndarray]) -> None:
    """Assigns all variables of the graph, by name."""
    variables = {variable.op.name: variable for variable in tf.global_variables()}
    if variables.keys() != values.keys():
        raise SystemExit(f"variables do not match: {sorted(variables.keys() ^ values.keys())}")
    for name, variable in variables.items():
        variable.load(values[name], session)


if __name__ == "__main__":
    serve({"t2t": engine})
