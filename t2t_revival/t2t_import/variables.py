"""The variables of T2T's `transformer` model, as TensorFlow 1 wrote them, under this project's names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.t2t_import.folder import FILE_SUFFIX, index_file

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
NORM = {"gamma": "layer_norm_scale", "beta": "layer_norm_bias"}


class Checkpoint:
    """The variables of a TensorFlow 1 checkpoint.

    Args:
        path: its prefix, such as `model.ckpt-1000`, one of its files, or the folder that it is the newest of.

    Attributes:
        prefix: as a path.
        shapes: of each variable of the model, by name; optimizer and counters are left out.

    Raises:
        T2TError: there is none, or it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.prefix = _prefix(path)
        try:
            self._reader = tf.train.load_checkpoint(str(self.prefix))
        except (tf.errors.OpError, ValueError) as error:
            raise T2TError(f"{self.prefix}: damaged checkpoint: {error}") from error
        everything = self._reader.get_variable_to_shape_map()
        self._has_step = "global_step" in everything
        self.shapes = {
            name: tuple(shape)
            for name, shape in sorted(everything.items())
            if not NOT_OF_THE_MODEL.match(name)
        }

    def read(self, name: str) -> np.ndarray:
        """A variable, as float32.

        Raises:
            T2TError: it cannot be read.
        """
        return np.asarray(self._tensor(name), np.float32)

    @property
    def step(self) -> int:
        """How many updates it was trained for; 0 if neither a variable nor its name says."""
        if self._has_step:
            return int(self._tensor("global_step"))
        found = STEP.search(self.prefix.name)
        return int(found[1]) if found else 0

    def _tensor(self, name: str) -> Any:
        try:
            return self._reader.get_tensor(name)
        except (tf.errors.OpError, ValueError) as error:
            raise T2TError(f"{self.prefix}: damaged checkpoint: {name} cannot be read: {error}") from error


def _prefix(path: Path) -> Path:
    if path.is_dir():
        return _newest(path)
    prefix = path.with_name(FILE_SUFFIX.sub("", path.name))
    if not index_file(prefix).is_file():
        raise T2TError(f"no tensor2tensor checkpoint {prefix}: there is no {prefix.name}.index")
    return prefix


def _newest(folder: Path) -> Path:
    """What the folder's file `checkpoint` names, in this folder: paths there may be of another machine."""
    try:
        state = tf.train.get_checkpoint_state(str(folder))
    except ValueError:  # it names nothing
        state = None
    if state is None:
        raise T2TError(
            f"no tensor2tensor checkpoint in {folder}: there is no file `checkpoint` that names one"
        )
    prefix = folder / Path(state.model_checkpoint_path).name
    if not index_file(prefix).is_file():
        raise T2TError(
            f"no tensor2tensor checkpoint in {folder}: its file `checkpoint` names "
            f"{state.model_checkpoint_path}, and there is no {index_file(prefix)}"
        )
    return prefix


def vocab_size(checkpoint: Checkpoint) -> int:
    """Rows of the embeddings; T2T may have padded it.

    Raises:
        T2TError: there are no embeddings of one vocabulary for inputs and targets.
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
    sizes = {size for tables in scopes.values() for size in tables.values()}
    if len(scopes) > 1 or len(sizes) > 1:
        raise T2TError(
            f"{checkpoint.prefix}: inputs and targets have vocabularies of their own ({', '.join(scopes)}); "
            "here they share one"
        )
    return sizes.pop()


def places(checkpoint: Checkpoint, hparams: HParams) -> Names:
    """For each weight here, without "transformer/" before its name, the variables that it is made of.

    Raises:
        T2TError: a variable is missing or left over; names the first.
    """
    found, another = _places(checkpoint, hparams), f"{checkpoint.prefix}: a checkpoint of another model"
    used = {name for names in found.values() for name in names}
    for name in sorted(used.difference(checkpoint.shapes)):
        raise T2TError(f"{another}: it has no {name}")
    for name in checkpoint.shapes:
        if name not in used:
            raise T2TError(f"{another}: it has {name}, unknown here")
    return found


def weights(
    checkpoint: Checkpoint, places: Names, shapes: Mapping[str, tuple[int, ...]], target_space: int
) -> dict[str, np.ndarray]:
    """All weights of the model.

    Args:
        checkpoint: of T2T's `transformer`.
        places: what `places` gave.
        shapes: of the weights.
        target_space: which row of the target-space embedding the problem uses.

    Raises:
        T2TError: a variable is of another shape; names the first.
    """
    arrays = {ours: _joined(checkpoint, names, target_space) for ours, names in places.items()}
    for ours, array in arrays.items():
        if array.shape != shapes[ours]:
            names = " and ".join(places[ours][:3])
            raise T2TError(
                f"{checkpoint.prefix}: a checkpoint of another model: {names}: {array.shape} together, "
                f"where hparams.json says {shapes[ours]}"
            )
    return arrays


def _joined(checkpoint: Checkpoint, names: tuple[str, ...], target_space: int) -> np.ndarray:
    """Shards of an embedding one below the other, kernels of an attention side by side."""
    arrays = [checkpoint.read(name) for name in names]
    if names == (TARGET_SPACE,):
        if not 0 <= target_space < len(arrays[0]):
            raise T2TError(
                f"--target_space_id={target_space}: {TARGET_SPACE} has the rows 0 to {len(arrays[0]) - 1}"
            )
        return arrays[0][target_space]
    try:
        return np.concatenate(arrays, axis=0 if EMBEDDING.fullmatch(names[0]) or arrays[0].ndim == 1 else 1)
    except ValueError as error:
        raise T2TError(f"{checkpoint.prefix}: {names[0]} does not fit {names[1]}: {error}") from error


def _places(checkpoint: Checkpoint, h: HParams) -> Names:
    """All weights of the model."""
    made = _embeddings(checkpoint, h)
    if h.use_target_space_embedding:
        made["source_positions/target_space"] = (TARGET_SPACE,)
    if h.pos == "emb":
        made["source_positions/embeddings"] = (f"{BODY}/inputs_positional_embedding",)
        made["target_positions/embeddings"] = (f"{BODY}/targets_positional_embedding",)
    norm = "layer_prepostprocess" if h.pre_norm else "layer_postprocess"
    for stack, layers in (("encoder", h.encoder_layers), ("decoder", h.decoder_layers)):
        for layer, (ours, theirs) in product(range(layers), SUBLAYERS[stack].items()):
            here, there = f"{stack}/layer_{layer}/{ours}", f"{BODY}/{stack}/layer_{layer}/{theirs}"
            for weight, variables in PARTS[ours].items():
                made[f"{here}/{weight}"] = tuple(f"{there}/{name}" for name in variables)
            made |= _norm(f"{here}_residual/norm", f"{there}/{norm}")
        if h.pre_norm:
            made |= _norm(f"{stack}/final_norm", f"{BODY}/{stack}/{norm}")
    return made


def _norm(here: str, there: str) -> Names:
    return {f"{here}/{ours}": (f"{there}/layer_norm/{theirs}",) for ours, theirs in NORM.items()}


def _embeddings(checkpoint: Checkpoint, h: HParams) -> Names:
    """Embeddings, each of them cut into `symbol_modality_num_shards` there."""
    shards: dict[str, dict[int, str]] = {}
    for name in checkpoint.shapes:
        if match := EMBEDDING.fullmatch(name):
            shards.setdefault(match[2], {})[int(match[3])] = name
    return {
        f"{here}/embeddings": _in_order(there, shards.get(there, {}))
        for here, there in _tables(h, "shared" in shards).items()
    }


def _in_order(table: str, shards: Mapping[int, str]) -> tuple[str, ...]:
    """The shards' names by number; where one is missing, the name that it should have."""
    first = next(iter(shards.values()), f"transformer/symbol_modality_*/{table}/weights_0")
    missing = f"{first.rpartition('_')[0]}_{{}}".format
    return tuple(shards.get(number, missing(number)) for number in range(max(shards, default=0) + 1))


def _tables(h: HParams, shared: bool) -> dict[str, str]:
    """Which matrix is which; "shared" beside a softmax of its own is T2T's `shared_embedding`."""
    if h.shared_embedding_and_softmax_weights:
        return {"target_embedding": "shared"}
    return {
        "source_embedding": "shared" if shared else "input_emb",
        "target_embedding": "shared" if shared else "target_emb",
        "softmax_embedding": "softmax",
    }
