"""Variables of T2T's `transformer` in TensorFlow 1 checkpoints, mapped to this project's weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_revival.addons.imports.t2t_folder import FILE_SUFFIX, index_file
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams

Names = dict[str, tuple[str, ...]]

EMBEDDING = re.compile(r"transformer/(symbol_modality_\d+_\d+)/(\w+)/weights_(\d+)")
NOT_OF_THE_MODEL = re.compile(r"[^/]*$|(training|losses_avg|train_stats)/|.*/(Adam(_1)?|Momentum)$")
STEP = re.compile(r"-(\d+)$")

BODY = "transformer/body"
TARGET_SPACE = f"{BODY}/target_space_embedding/kernel"
SUBLAYERS = {
    "encoder": {"self_attention": "self_attention", "feed_forward": "ffn"},
    "decoder": {
        "self_attention": "self_attention",
        "encoder_attention": "encdec_attention",
        "feed_forward": "ffn",
    },
}
QUERY, KEY, VALUE, OUTPUT = (
    f"multihead_attention/{part}/kernel" for part in ("q", "k", "v", "output_transform")
)
PARTS: dict[str, Names] = {
    "self_attention": {"query_key_value": (QUERY, KEY, VALUE), "output": (OUTPUT,)},
    "encoder_attention": {"query": (QUERY,), "key_value": (KEY, VALUE), "output": (OUTPUT,)},
    "feed_forward": {
        "kernel_1": ("conv1/kernel",),
        "bias_1": ("conv1/bias",),
        "kernel_2": ("conv2/kernel",),
        "bias_2": ("conv2/bias",),
    },
}
RELATIVE_TABLES = {
    f"relative_{kind}": (
        f"multihead_attention/dot_product_attention_relative/relative_positions_{kind}/embeddings",
    )
    for kind in ("keys", "values")
}
NORM = {"gamma": "layer_norm_scale", "beta": "layer_norm_bias"}


class T2TCheckpoint:
    """Variables of a TensorFlow 1 checkpoint.

    Args:
        path: a prefix such as `model.ckpt-1000`, one of its files, or a folder, for its newest checkpoint.

    Attributes:
        prefix: the checkpoint's prefix.
        shapes: shape of each of the model's variables, by name; without optimizer and counters.

    Raises:
        T2TError: there is no checkpoint, or it is corrupt.
    """

    def __init__(self, path: Path) -> None:
        self.prefix = _prefix(path)
        try:
            self._reader = tf.train.load_checkpoint(str(self.prefix))
        except (tf.errors.OpError, ValueError) as error:
            raise T2TError(f"{self.prefix}: corrupt checkpoint: {error}") from error
        everything = self._reader.get_variable_to_shape_map()
        self._has_step = "global_step" in everything
        self.shapes = {
            name: tuple(shape)
            for name, shape in sorted(everything.items())
            if not NOT_OF_THE_MODEL.match(name)
        }

    def read(self, name: str) -> np.ndarray:
        """Reads a variable as float32."""
        return np.asarray(self._tensor(name), np.float32)

    @property
    def step(self) -> int:
        """Number of updates, from the variable `global_step` or the checkpoint's name; 0 without either."""
        if self._has_step:
            return int(self._tensor("global_step"))
        found = STEP.search(self.prefix.name)
        return int(found[1]) if found else 0

    def _tensor(self, name: str) -> Any:
        try:
            return self._reader.get_tensor(name)
        except (tf.errors.OpError, ValueError) as error:
            raise T2TError(f"{self.prefix}: corrupt checkpoint: {name} cannot be read: {error}") from error


def _prefix(path: Path) -> Path:
    """Returns a checkpoint's prefix; in a folder, the one that its file `checkpoint` names."""
    if not path.is_dir():
        return path.with_name(FILE_SUFFIX.sub("", path.name))
    try:
        state = tf.train.get_checkpoint_state(str(path))
    except ValueError:  # the file names no checkpoint
        state = None
    if state is None:
        raise T2TError(f"no tensor2tensor checkpoint in {path}: there is no file `checkpoint` that names one")
    prefix = path / Path(state.model_checkpoint_path).name  # which may be named in another folder
    if not index_file(prefix).is_file():
        raise T2TError(
            f"no tensor2tensor checkpoint in {path}: its file `checkpoint` names "
            f"{state.model_checkpoint_path}, and there is no {index_file(prefix)}"
        )
    return prefix


def vocab_sizes(checkpoint: T2TCheckpoint) -> dict[str, int]:
    """Returns the rows of embeddings, T2T's padding included, by scope: one for each size of a vocabulary.

    Raises:
        T2TError: there are no embeddings.
    """
    scopes: dict[str, dict[str, int]] = {}
    for name, shape in checkpoint.shapes.items():
        if match := EMBEDDING.fullmatch(name):
            tables = scopes.setdefault(match[1], {})
            tables[match[2]] = tables.get(match[2], 0) + shape[0]
    if not scopes:
        first = next(iter(checkpoint.shapes), "nothing")
        raise T2TError(
            f"{checkpoint.prefix}: not a checkpoint of tensor2tensor's transformer: it has {first}, "
            "and no transformer/symbol_modality_*/*/weights_0"
        )
    return {scope: max(tables.values()) for scope, tables in scopes.items()}


def has_own_softmax(checkpoint: T2TCheckpoint) -> bool:
    """Returns whether the softmax is no embedding, as T2T has it where two vocabularies differ in size."""
    tables = (EMBEDDING.fullmatch(name) for name in checkpoint.shapes)
    return any(match[2] == "softmax" for match in tables if match)


def variable_names(checkpoint: T2TCheckpoint, hparams: HParams, scopes: Sequence[str]) -> Names:
    """Returns T2T's variables for each weight, whose name is without its prefix "transformer/".

    Args:
        checkpoint: the checkpoint.
        hparams: of the model.
        scopes: those of the vocabulary, or of the inputs' and the targets', which are one if their sizes
            were equal.

    Raises:
        T2TError: a variable is missing or unknown; the message names the first one.
    """
    expected = _variable_names(checkpoint, hparams, scopes)
    mismatch = f"{checkpoint.prefix} is of another model"
    used = {name for names in expected.values() for name in names}
    if missing := sorted(used.difference(checkpoint.shapes)):
        raise T2TError(f"{mismatch}: it has no {missing[0]}")
    if unknown := sorted(checkpoint.shapes.keys() - used):
        raise T2TError(f"{mismatch}: it has an unknown variable {unknown[0]}")
    return expected


def weights(
    checkpoint: T2TCheckpoint, names: Names, shapes: Mapping[str, tuple[int, ...]], target_space: int
) -> dict[str, np.ndarray]:
    """Reads all weights of the model; `target_space` is the problem's row of the target-space embedding.

    Raises:
        T2TError: a variable has another shape than `shapes` has for the weight; names the first one.
    """
    arrays = {weight: _read_weight(checkpoint, names[weight], target_space) for weight in names}
    for weight, array in arrays.items():
        if array.shape != shapes[weight]:
            variables = " and ".join(names[weight][:3])
            raise T2TError(
                f"{checkpoint.prefix} is of another model: {variables} have the shape {array.shape}, "
                f"hparams.json requires {shapes[weight]}"
            )
    return arrays


def _read_weight(checkpoint: T2TCheckpoint, names: tuple[str, ...], target_space: int) -> np.ndarray:
    """Concatenates the shards of an embedding by rows, the kernels of an attention by columns."""
    arrays = [checkpoint.read(name) for name in names]
    if names == (TARGET_SPACE,):
        if not 0 <= target_space < len(arrays[0]):
            raise T2TError(
                f"--target_space_id={target_space}: {TARGET_SPACE} has rows 0 to {len(arrays[0]) - 1}"
            )
        return arrays[0][target_space]
    return np.concatenate(arrays, axis=0 if EMBEDDING.fullmatch(names[0]) or arrays[0].ndim == 1 else 1)


def _variable_names(checkpoint: T2TCheckpoint, h: HParams, scopes: Sequence[str]) -> Names:
    names = _embeddings(checkpoint, h, scopes)
    if h.use_target_space_embedding:
        names["source_positions/target_space"] = (TARGET_SPACE,)
    if h.pos == "emb":
        names["source_positions/embeddings"] = (f"{BODY}/inputs_positional_embedding",)
        names["target_positions/embeddings"] = (f"{BODY}/targets_positional_embedding",)
    norm = "layer_prepostprocess" if h.pre_norm else "layer_postprocess"
    for stack, layers in (("encoder", h.encoder_layers), ("decoder", h.decoder_layers)):
        for layer, (ours, theirs) in product(range(layers), SUBLAYERS[stack].items()):
            path, t2t_path = f"{stack}/layer_{layer}/{ours}", f"{BODY}/{stack}/layer_{layer}/{theirs}"
            relative = RELATIVE_TABLES if h.pos == "relative" and ours == "self_attention" else {}
            for weight, variables in (PARTS[ours] | relative).items():
                names[f"{path}/{weight}"] = tuple(f"{t2t_path}/{name}" for name in variables)
            names |= _norm(f"{path}_residual/norm", f"{t2t_path}/{norm}")
        if h.pre_norm:
            names |= _norm(f"{stack}/final_norm", f"{BODY}/{stack}/{norm}")
    return names


def _norm(path: str, t2t_path: str) -> Names:
    return {f"{path}/{ours}": (f"{t2t_path}/layer_norm/{theirs}",) for ours, theirs in NORM.items()}


def _embeddings(checkpoint: T2TCheckpoint, h: HParams, scopes: Sequence[str]) -> Names:
    """Returns the variables of the embeddings; T2T splits each into `symbol_modality_num_shards`."""
    shards: dict[tuple[str, str], dict[int, str]] = {}
    for name in checkpoint.shapes:
        if match := EMBEDDING.fullmatch(name):
            shards.setdefault((match[1], match[2]), {})[int(match[3])] = name
    tables = {
        embedding: (scopes[0 if embedding == "source_embedding" else -1], table)
        for embedding, table in _tables(h, any(table == "shared" for _, table in shards)).items()
    }
    if len(scopes) > 1 and h.shared_embedding_and_softmax_weights:
        tables["source_embedding"] = scopes[0], "shared"
    return {
        f"{embedding}/embeddings": _in_order(*table, shards.get(table, {}))
        for embedding, table in tables.items()
    }


def _in_order(scope: str, table: str, shards: Mapping[int, str]) -> tuple[str, ...]:
    """Returns the names of all shards by number, of missing ones too."""
    first = next(iter(shards.values()), f"transformer/{scope}/{table}/weights_0")
    missing = f"{first.rpartition('_')[0]}_{{}}".format
    return tuple(shards.get(number, missing(number)) for number in range(max(shards, default=0) + 1))


def _tables(h: HParams, shared: bool) -> dict[str, str]:
    """Returns T2T's table for each embedding; "shared" beside a softmax is T2T's `shared_embedding`."""
    if h.shared_embedding_and_softmax_weights:
        return {"target_embedding": "shared"}
    return {
        "source_embedding": "shared" if shared else "input_emb",
        "target_embedding": "shared" if shared else "target_emb",
        "softmax_embedding": "softmax",
    }
