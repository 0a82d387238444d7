"""T2T's `transformer` in NumPy, with T2T's variable names: the reference for imports."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_revival.addons.imports.model import ImportResult
from t2t_revival.addons.imports.t2t import ImportSource, import_checkpoint
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from tests.support.numpy_transformer import feed_forward, layer_norm, multi_head

Arrays = dict[str, np.ndarray]

SETTINGS: dict[str, Any] = {
    "batch_size": 4096,
    "ffn_layer": "dense_relu_dense",
    "filter_size": 12,
    "hidden_size": 8,
    "label_smoothing": 0.1,
    "layer_postprocess_sequence": "da",
    "layer_preprocess_sequence": "n",
    "learning_rate": 0.2,
    "learning_rate_constant": 2.0,
    "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
    "learning_rate_warmup_steps": 8000,
    "max_length": 20,
    "num_heads": 2,
    "num_hidden_layers": 2,
    "optimizer": "adam",
    "optimizer_adam_beta2": 0.997,
    "pos": "timing",
    "shared_embedding_and_softmax_weights": True,
    "symbol_modality_num_shards": 3,
    "use_target_space_embedding": True,
    "vocab_divisor": 1,
}
SEPARATE = {"shared_embedding_and_softmax_weights": False}
POST_NORM = {"layer_preprocess_sequence": "none", "layer_postprocess_sequence": "dan"}
BODY = "transformer/body"
QUERY = "transformer/body/encoder/layer_0/self_attention/multihead_attention/q/kernel"


def variables(settings: dict[str, Any], vocab_size: int) -> Arrays:
    """Returns random variables by T2T's names."""
    random, arrays = np.random.default_rng(8), {}
    hidden, inner = settings["hidden_size"], settings["filter_size"]
    vocab_size += -vocab_size % settings["vocab_divisor"]

    def add(name: str, *shape: int) -> None:
        arrays[name] = random.normal(0, 0.4, shape).astype(np.float32)

    shared = settings["shared_embedding_and_softmax_weights"]
    tables = ["shared"] if shared else ["input_emb", "target_emb", "softmax"]
    if settings.get("shared_embedding"):
        tables = ["shared", "softmax"]
    shards = settings["symbol_modality_num_shards"]
    for table in tables:
        for shard in range(shards):
            rows = vocab_size // shards + (shard < vocab_size % shards)
            add(f"transformer/symbol_modality_{vocab_size}_{hidden}/{table}/weights_{shard}", rows, hidden)
    if settings["use_target_space_embedding"]:
        add(f"{BODY}/target_space_embedding/kernel", 32, hidden)
    if settings["pos"] == "emb":
        for side in ("inputs", "targets"):
            add(f"{BODY}/{side}_positional_embedding", settings["max_length"], hidden)
    pre_norm = settings["layer_preprocess_sequence"] == "n"
    norm = "layer_prepostprocess" if pre_norm else "layer_postprocess"
    norms = [f"{BODY}/{stack}/{norm}" for stack in ("encoder", "decoder")] if pre_norm else []
    for stack, attentions in (
        ("encoder", ["self_attention"]),
        ("decoder", ["self_attention", "encdec_attention"]),
    ):
        for layer in range(settings["num_hidden_layers"]):
            prefix = f"{BODY}/{stack}/layer_{layer}"
            for attention in attentions:
                for part in ("q", "k", "v", "output_transform"):
                    add(f"{prefix}/{attention}/multihead_attention/{part}/kernel", hidden, hidden)
            for name, *shape in (
                ("conv1/kernel", hidden, inner),
                ("conv1/bias", inner),
                ("conv2/kernel", inner, hidden),
                ("conv2/bias", hidden),
            ):
                add(f"{prefix}/ffn/{name}", *shape)
            norms += [f"{prefix}/{part}/{norm}" for part in (*attentions, "ffn")]
    for name in norms:
        add(f"{name}/layer_norm/layer_norm_scale", hidden)
        add(f"{name}/layer_norm/layer_norm_bias", hidden)
    return arrays


def stored_variables(known: Arrays) -> Arrays:
    """Returns the variables of a file of tests/reference that has their names, shapes and values."""
    shapes = [tuple(map(int, shape.split(","))) for shape in known["shapes"]]
    values = np.split(known["values"], np.cumsum([np.prod(shape) for shape in shapes])[:-1])
    arrays = (array.reshape(shape) for array, shape in zip(values, shapes, strict=True))
    return dict(zip(known["names"].tolist(), arrays, strict=True))


def write(
    folder: Path, settings: dict[str, Any], arrays: Arrays, vocabulary: bytes | None, step: int = 7
) -> None:
    """Writes an output_dir of T2T: checkpoint, hparams.json, vocabulary."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(arrays)
    prefix = f"model.ckpt-{step}"
    tf.raw_ops.SaveV2(
        prefix=str(folder / prefix),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[arrays[name] for name in names],
    )
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{prefix}"\n')
    (folder / "hparams.json").write_text(json.dumps(settings))
    if vocabulary is not None:
        (folder / "vocab.translate_ende_toy.64.subwords").write_bytes(vocabulary)


def logits(
    arrays: Arrays, settings: dict[str, Any], source: np.ndarray, targets: np.ndarray, space: int = 0
) -> np.ndarray:
    """Returns the logits [target, vocab] of one pair of ids, [source] and [target]."""

    def table(*names: str) -> np.ndarray:
        shards = settings["symbol_modality_num_shards"]
        (scope,) = {name.split("/")[1] for name in arrays if "symbol_modality" in name}
        prefixes = (f"transformer/{scope}/{name}/weights_" for name in names)
        prefix = next(prefix for prefix in prefixes if f"{prefix}0" in arrays)
        return np.concatenate([arrays[f"{prefix}{shard}"] for shard in range(shards)])

    def embedded(ids: np.ndarray, side: str, matrix: np.ndarray) -> np.ndarray:
        x = matrix[ids] * math.sqrt(hidden) * (ids != 0)[:, None]
        if side == "inputs" and settings["use_target_space_embedding"]:
            x = x + arrays[f"{BODY}/target_space_embedding/kernel"][space]
        if settings["pos"] == "emb":
            return x + arrays[f"{BODY}/{side}_positional_embedding"][: len(ids)]
        rates = 1e4 ** -(np.arange(hidden // 2) / (hidden // 2 - 1))
        angles = np.arange(len(ids))[:, None] * rates
        return x + np.concatenate([np.sin(angles), np.cos(angles)], axis=1)

    def norm(x: np.ndarray, prefix: str) -> np.ndarray:
        found = [arrays[f"{prefix}/layer_norm/layer_norm_{name}"] for name in ("scale", "bias")]
        return layer_norm(x, *found)

    def residual(x: np.ndarray, prefix: str, sublayer: Any) -> np.ndarray:
        if pre_norm:
            return x + sublayer(norm(x, f"{prefix}/layer_prepostprocess"))
        return norm(x + sublayer(x), f"{prefix}/layer_postprocess")

    def attention(prefix: str, memory: np.ndarray | None, visible: np.ndarray) -> Any:
        parts = {"query": "q", "key": "k", "value": "v", "output": "output_transform"}
        kernels = {
            name: arrays[f"{prefix}/multihead_attention/{part}/kernel"] for name, part in parts.items()
        }
        return lambda x: multi_head(x, x if memory is None else memory, kernels, heads, visible)

    def stack(x: np.ndarray, name: str, visible: np.ndarray, encoded: Any, source_visible: Any) -> np.ndarray:
        for layer in range(settings["num_hidden_layers"]):
            prefix = f"{BODY}/{name}/layer_{layer}"
            x = residual(x, f"{prefix}/self_attention", attention(f"{prefix}/self_attention", None, visible))
            if encoded is not None:
                sub = f"{prefix}/encdec_attention"
                x = residual(x, sub, attention(sub, encoded, source_visible))
            ffn = [
                arrays[f"{prefix}/ffn/{conv}/{kind}"]
                for conv in ("conv1", "conv2")
                for kind in ("kernel", "bias")
            ]
            x = residual(x, f"{prefix}/ffn", lambda x, ffn=ffn: feed_forward(x, *ffn))
        return norm(x, f"{BODY}/{name}/layer_prepostprocess") if pre_norm else x

    hidden, heads = settings["hidden_size"], settings["num_heads"]
    pre_norm = settings["layer_preprocess_sequence"] == "n"
    source_visible = np.broadcast_to(source != 0, (len(targets), len(source)))
    earlier = np.tril(np.ones((len(targets), len(targets)), bool))
    own = np.broadcast_to(source != 0, (len(source), len(source)))
    x = embedded(source, "inputs", table("input_emb", "shared"))
    encoded = stack(x, "encoder", own, None, None)
    shifted = np.concatenate([[0], targets[:-1]])
    x = embedded(shifted, "targets", table("target_emb", "shared"))
    x = stack(x, "decoder", earlier, encoded, source_visible)
    return x @ table("softmax", "shared").T


def imported(tmp_path: Path, **changes: Any) -> ImportResult:
    """Imports the folder t2t into the folder out."""
    return import_checkpoint(ImportSource(tmp_path / "t2t", **changes), tmp_path / "out")


def import_one(folder: Path, subwords_file: Path) -> Path:
    """An output_dir made of one of T2T's, both in `folder`; its vocabulary is padded."""
    settings = {**SETTINGS, "vocab_divisor": 32, "max_length": 40}
    arrays = variables(settings, SubwordVocabulary(subwords_file).size)
    write(folder / "t2t", settings, arrays, subwords_file.read_bytes())
    import_checkpoint(ImportSource(folder / "t2t"), folder / "out")
    return folder / "out"
