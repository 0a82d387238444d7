"""Contestant of decode_speed.py: OpenNMT-tf's own Transformer and beam search.

Ids in, ids out: OpenNMT-tf's environment has no SentencePiece, so its time excludes text processing.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import opennmt
import tensorflow as tf
from translating import ALPHA, BEAM_SIZE, MOST_TOKENS, ids_of, in_batches, padded, serve, tokens_in
from weights import read_weights

if TYPE_CHECKING:
    from translating import Translate

PAD, START, END = 0, 1, 2  # of OpenNMT-tf's ids
NEG_INF = -1e4  # bias of ids that this project never outputs
LINEAR = {
    "query": "linear_queries",
    "key": "linear_keys",
    "value": "linear_values",
    "output": "linear_output",
}


def engine(folder: Path, num_parallel_batches: int, beam_size: int = BEAM_SIZE) -> Translate:
    """Returns one model with a beam search graph, as in `onmt-main infer`, for each parallel batch.

    Two threads in one graph crash: TensorFlow 2.13's oneDNN kernels are not thread-safe.
    """
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(num_parallel_batches)
    settings, weights = read_weights(folder)
    with tempfile.TemporaryDirectory() as scratch:
        model = make_model(settings, len(weights["source_positions"]), beam_size, Path(scratch))
    model.create_variables()
    assign(model, settings, weights)
    free: SimpleQueue[Any] = SimpleQueue()
    for _ in range(num_parallel_batches):
        free.put(_graph(model))

    def ask(lines: list[str]) -> list[str]:
        rows = padded([ids_of(line) for line in lines])
        infer = free.get()
        found = infer({"ids": rows + (rows > 0), "length": (rows > 0).sum(axis=1, dtype=np.int32)})
        free.put(infer)
        tokens, lengths = found["tokens"].numpy()[:, 0], found["length"].numpy()[:, 0]
        return [b" ".join(row[:length]).decode() for row, length in zip(tokens, lengths, strict=True)]

    return lambda lines, batch: in_batches(lines, batch, num_parallel_batches, ask, tokens_in)


def _graph(model: opennmt.models.Transformer) -> Any:
    spec = {"ids": tf.TensorSpec([None, None], tf.int32), "length": tf.TensorSpec([None], tf.int32)}
    infer = tf.function(lambda features: model.infer(features), input_signature=[spec])
    infer({"ids": np.full((1, 1), END, np.int32), "length": np.ones(1, np.int32)})  # traced in one thread
    return infer


def make_model(
    settings: dict[str, Any], positions: int, beam_size: int, folder: Path
) -> opennmt.models.Transformer:
    """Returns the model, not built yet.

    Its ids are PAD, the start token, then this project's ids plus one. Positions are a table of "learned"
    ones, since OpenNMT-tf's sinusoids are of one kind only.

    Args:
        settings: of the model.
        positions: length of its position tables.
        beam_size: width of the beam.
        folder: for the vocabulary file.
    """
    vocabulary = folder / "vocabulary.txt"
    pieces = [str(number) for number in range(2, settings["vocab_size"])]
    vocabulary.write_text("".join(f"{token}\n" for token in ("<blank>", "<s>", "</s>", *pieces)))
    sharing = opennmt.models.EmbeddingsSharingLevel
    shared = settings["shared_embedding_and_softmax_weights"]
    model = opennmt.models.Transformer(
        num_layers=(settings["encoder_layers"], settings["decoder_layers"]),
        num_units=settings["hidden_size"],
        num_heads=settings["num_heads"],
        ffn_inner_dim=settings["filter_size"],
        pre_norm=settings["pre_norm"],
        mha_bias=False,
        position_encoder_class=lambda: opennmt.layers.PositionEmbedder(maximum_position=positions),
        share_embeddings=sharing.ALL if shared else sharing.NONE,
    )
    data = {"source_vocabulary": str(vocabulary), "target_vocabulary": str(vocabulary)}
    params = {"beam_width": beam_size, "length_penalty": ALPHA, "maximum_decoding_length": MOST_TOKENS}
    model.initialize(data, params)
    return model


def assign(
    model: opennmt.models.Transformer, settings: dict[str, Any], weights: dict[str, np.ndarray]
) -> None:
    """Assigns all variables; weights.py lists their names."""
    target = _rows(weights["target_embedding"])
    model.labels_inputter.embedding.assign(target)
    output = model.decoder.output_layer
    if not settings["shared_embedding_and_softmax_weights"]:
        model.features_inputter.embedding.assign(_rows(weights["source_embedding"]))
        output.kernel.assign(_rows(weights["softmax_embedding"]).T)
    bias = np.zeros(len(target), np.float32)
    bias[[PAD, START, -1]] = NEG_INF
    output.bias.assign(bias)
    _stack(model.encoder, "encoder", weights["source_positions"], settings, weights)
    _stack(model.decoder, "decoder", weights["target_positions"], settings, weights)


def _stack(
    stack: Any, side: str, positions: np.ndarray, settings: dict[str, Any], weights: dict[str, np.ndarray]
) -> None:
    stack.position_encoder.embedding.assign(
        np.concatenate([positions[:1], positions])
    )  # number 0 is not used
    epsilon, norm = settings["norm_epsilon"], "input" if settings["pre_norm"] else "output"
    if stack.layer_norm:
        _norm(stack.layer_norm, f"{side}/final", weights, epsilon)
    for number, layer in enumerate(stack.layers):
        place = f"{side}/{number}"
        wrappers = {f"{place}/self_attention": layer.self_attention}
        if side == "decoder":
            wrappers[f"{place}/encoder_attention"] = layer.attention[0]
        for name, wrapper in wrappers.items():
            for weight, linear in LINEAR.items():
                getattr(wrapper.layer, linear).kernel.assign(weights[f"{name}/{weight}"])
        name = f"{place}/feed_forward"
        for weight, dense in (("1", layer.ffn.layer.inner), ("2", layer.ffn.layer.outer)):
            dense.kernel.assign(weights[f"{name}/kernel_{weight}"])
            dense.bias.assign(weights[f"{name}/bias_{weight}"])
        wrappers[name] = layer.ffn
        for name, wrapper in wrappers.items():
            _norm(getattr(wrapper, f"{norm}_layer_norm"), name, weights, epsilon)


def _norm(norm: Any, name: str, weights: dict[str, np.ndarray], epsilon: float) -> None:
    """Assigns a norm; Keras's fused normalisation raises an epsilon below 1.001e-5 to that."""
    norm.gamma.assign(weights[f"{name}/gamma"])
    norm.beta.assign(weights[f"{name}/beta"])
    norm.epsilon = epsilon


def _rows(embedding: np.ndarray) -> np.ndarray:
    """Inserts rows of zeros for OpenNMT-tf's start and unknown tokens into [vocab, hidden]."""
    zeros = np.zeros_like(embedding[:1])
    return np.concatenate([embedding[:1], zeros, embedding[1:], zeros])


if __name__ == "__main__":
    serve({"opennmt": engine})
