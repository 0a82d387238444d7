"""Weights of encoder-decoder models as transformers names and lays them out, to this project's and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from t2t_revival import registry
from t2t_revival.addons.imports.model import (
    HPARAMS_SET,
    SCOPE,
    ImportedModel,
    ImportResult,
    Shapes,
    VocabularyFile,
    save,
)
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams

if TYPE_CHECKING:
    from t2t_revival.model import Transformer

ATTENTION = {"self_attention": "self_attn", "encoder_attention": "encoder_attn"}  # here: there
SSRU = "ssru"  # begins the weights of Marian's recurrent unit in the place of self_attn
BIAS = "final_logits_bias"
SHARED, SOURCE, TARGET, SOFTMAX = (
    f"{name}.weight" for name in ("shared", "encoder.embed_tokens", "decoder.embed_tokens", "lm_head")
)
EMBEDDINGS, SOFTMAX_BIAS = "target_embedding/embeddings", "target_embedding/softmax_bias"  # here
NEVER = -1e4  # bias of what is never produced; within the range of float16


class Weight(NamedTuple):
    """A weight here, and what it is made of.

    Attributes:
        name: here.
        parts: names there. Kernels are [out, in] there, [in, out] here, where parts stand side by side.
        channels: axes of a part, as it is here, that are d_model.
    """

    name: str
    parts: Sequence[str]
    channels: Sequence[int]


def of_layers(hparams: HParams) -> Iterator[Weight]:
    """Yields the weights of encoder and decoder."""
    for stack, layers in (("encoder", hparams.encoder_layers), ("decoder", hparams.decoder_layers)):
        for layer in range(layers):
            yield from _of_layer(f"{stack}/layer_{layer}", f"{stack}.layers.{layer}", hparams)
        if hparams.pre_norm:
            yield from _norm(f"{stack}/final_norm", f"{stack}.layer_norm")


def _of_layer(ours: str, theirs: str, hparams: HParams) -> Iterator[Weight]:
    is_decoder = ours.startswith("decoder")
    for name, part in ATTENTION.items() if is_decoder else [*ATTENTION.items()][:1]:
        yield from _norm(f"{ours}/{name}_residual/norm", f"{theirs}.{part}_layer_norm")
        if name == "self_attention" and is_decoder and hparams.decoder_self_attention == "ssru":
            kernels = [f"{theirs}.{SSRU}.{kernel}" for kernel in ("forget", "new")]
            yield Weight(f"{ours}/{name}/kernel", kernels, (0, 1))
            yield Weight(f"{ours}/{name}/forget_bias", [f"{theirs}.{SSRU}.forget_bias"], (0,))
            continue
        together = (
            {"query_key_value": "qkv"} if name == "self_attention" else {"query": "q", "key_value": "kv"}
        )
        for kernel, letters in together.items():
            parts = [f"{theirs}.{part}.{letter}_proj" for letter in letters]
            yield Weight(f"{ours}/{name}/{kernel}", [f"{each}.weight" for each in parts], (0,))
            yield Weight(f"{ours}/{name}/{kernel}_bias", [f"{each}.bias" for each in parts], ())
        yield Weight(f"{ours}/{name}/output", [f"{theirs}.{part}.out_proj.weight"], (1,))
        yield Weight(f"{ours}/{name}/output_bias", [f"{theirs}.{part}.out_proj.bias"], (0,))
    yield from _norm(f"{ours}/feed_forward_residual/norm", f"{theirs}.final_layer_norm")
    for number, of_kernel, of_bias in (("1", (0,), ()), ("2", (1,), (0,))):
        yield Weight(f"{ours}/feed_forward/kernel_{number}", [f"{theirs}.fc{number}.weight"], of_kernel)
        yield Weight(f"{ours}/feed_forward/bias_{number}", [f"{theirs}.fc{number}.bias"], of_bias)


def _norm(ours: str, theirs: str) -> Iterator[Weight]:
    yield Weight(f"{ours}/gamma", [f"{theirs}.weight"], (0,))
    yield Weight(f"{ours}/beta", [f"{theirs}.bias"], (0,))


def _moved(array: np.ndarray, channels: Sequence[int], order: np.ndarray) -> np.ndarray:
    for axis in channels if np.any(np.diff(order) != 1) else ():
        array = np.take(array, order, axis=axis)
    return array


def channels_there(hparams: HParams, sines_first: bool) -> np.ndarray:
    """Returns the channel there for each channel of d_model here.

    `sines_first` is for models with the paper's positions in which all sines come before all cosines, where
    here they take turns. The order of the channels changes no result.
    """
    order = np.arange(hparams.hidden_size)
    return order.reshape(2, -1).T.ravel() if sines_first else order


@dataclass
class Layers:
    """The weights of a model of transformers or Marian.

    Attributes:
        where: the file, for errors.
        weights: arrays by transformers' names, without "model." before them; each is removed when it is read.
        hparams: of the model.
        rows: for each id here, the row of the embeddings there, of sources and of targets; what has row -1 is
            0, and never produced.
        sines_first: see `channels_there`.
        starts_with_padding: whether outputs start with the vector of padding there, which is 0 here.
        num_rows: of the embeddings there; 0 for as many as `rows` names.
    """

    where: Path
    weights: dict[str, np.ndarray]
    hparams: HParams
    rows: Sequence[Sequence[int]]
    sines_first: bool = False
    starts_with_padding: bool = True
    num_rows: int = 0

    def save(
        self,
        problem: str,
        vocabularies: Sequence[VocabularyFile],
        decode_hparams: Mapping[str, Any],
        output_dir: Path,
        hparams_set: str = HPARAMS_SET,
        notes: Sequence[str] = (),
    ) -> ImportResult:
        """Writes an output_dir; see `save` of model.py.

        Raises:
            T2TError: as `check`, or that function. Nothing is written then.
        """
        self.check()
        decoding = {**registry.problem(problem).decode_hparams(), **decode_hparams}
        model = ImportedModel(
            problem, hparams_set, self.hparams, vocabularies, decoding, self.arrays, notes=[*notes]
        )
        return save(model, output_dir)

    def check(self) -> None:
        """Checks names and shapes of all weights, before there is a model of these hyperparameters.

        Raises:
            T2TError: one is missing, or has another shape, or nothing here has it; or outputs would start
                with another vector than 0.
        """
        known = {SHARED, SOURCE, TARGET, SOFTMAX, *([BIAS] if self.hparams.softmax_bias else [])}
        for name in known & self.weights.keys():
            rows = self.num_rows or 1 + max(self.rows[0] if name == SOURCE else self.rows[-1])
            self._check_shape(name, (1, rows) if name == BIAS else (rows, self.hparams.hidden_size))
        for weight in of_layers(self.hparams):
            for name in weight.parts:
                self._find(name)
                self._check_shape(name, self._shape(name))
                known.add(name)
        if left := sorted(self.weights.keys() - known):
            raise T2TError(f"{self.where}: the model has {left[0]}, which has no place here")
        if self.hparams.softmax_bias:
            self._find(BIAS)
        start = self.weights[self._find(TARGET, SHARED)]
        if self.starts_with_padding and self.rows[-1][0] >= 0 and np.any(start[self.rows[-1][0]]):
            raise T2TError(f"{self.where}: the embedding of padding, with which outputs start, is not 0")

    def _shape(self, name: str) -> tuple[int, ...]:
        """Returns the shape of a weight of encoder or decoder."""
        hidden, inner = self.hparams.hidden_size, self.hparams.filter_size
        if name.startswith("decoder"):
            inner = self.hparams.decoder_channels
        shapes = {"fc1.weight": (inner, hidden), "fc1.bias": (inner,), "fc2.weight": (hidden, inner)}
        is_matrix = name.endswith(("_proj.weight", f"{SSRU}.new", f"{SSRU}.forget"))
        usual: tuple[int, ...] = (hidden, hidden) if is_matrix else (hidden,)
        return shapes.get(".".join(name.split(".")[-2:]), usual)

    def _check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        if (found := self.weights[name].shape) not in (shape, shape[1:] if name == BIAS else shape):
            raise T2TError(
                f"{self.where}: {name} has the shape {found}; vocabulary and settings require {shape}: they "
                "are of another model"
            )

    def arrays(self, shapes: Shapes) -> dict[str, np.ndarray]:
        """Returns the array of each weight of a model with these shapes, by its name here."""
        order = channels_there(self.hparams, self.sines_first)
        arrays = self._embeddings(order, {name.partition("/")[0] for name in shapes})
        for weight in of_layers(self.hparams):
            parts = [self._read(part) for part in weight.parts]
            moved = [_moved(part.T, weight.channels, order) for part in parts]
            arrays[weight.name] = np.concatenate(moved, axis=-1)
        return arrays

    def _embeddings(self, order: np.ndarray, names: set[str]) -> dict[str, np.ndarray]:
        target = self._read(TARGET, SHARED)
        tables = {"target_embedding": (target, -1)}
        if "source_embedding" in names:
            tables["source_embedding"] = (self._read(SOURCE) if SOURCE in self.weights else target), 0
        if "softmax_embedding" in names:
            tables["softmax_embedding"] = self._read(SOFTMAX), -1
        arrays = {}
        for name, (table, side) in tables.items():
            rows = np.array(self.rows[side])
            vectors = _moved(table[rows], (1,), order)
            vectors[rows < 0] = 0
            arrays[f"{name}/embeddings"] = vectors
        if not self.hparams.softmax_bias:
            return arrays
        softmax = "softmax_embedding" if "softmax_embedding" in names else "target_embedding"
        rows = np.array(self.rows[-1])
        arrays[f"{softmax}/softmax_bias"] = np.where(rows < 0, NEVER, self._read(BIAS).reshape(-1)[rows])
        return arrays

    def _read(self, *names: str) -> np.ndarray:
        """Returns the first of some weights that is there, as float32."""
        return np.asarray(self.weights.pop(self._find(*names)), np.float32)

    def _find(self, *names: str) -> str:
        name = next((name for name in names if name in self.weights), None)
        if name is None:
            raise T2TError(f"{self.where}: the weights lack {names[0]}: they are of another model")
        return name


def arrays_of(model: Transformer) -> dict[str, np.ndarray]:
    """Returns the weights of a model by their names here, as float32, with a bias of the softmax."""
    arrays = {weight.path.removeprefix(SCOPE): np.array(weight, np.float32) for weight in model.weights}
    arrays.setdefault(SOFTMAX_BIAS, np.zeros(len(arrays[EMBEDDINGS]), np.float32))
    return arrays


def layers_there(
    arrays: Mapping[str, np.ndarray], hparams: HParams, order: np.ndarray
) -> dict[str, np.ndarray]:
    """Returns the weights of encoder and decoder by their names there, the inverse of `Layers.arrays`.

    Biases that a model has not are 0.

    Args:
        arrays: by their names here.
        hparams: of the model.
        order: the channel there for each channel of d_model here.
    """
    back = np.argsort(order)
    there = {}
    for weight in of_layers(hparams):
        kernel = weight.name.removesuffix("_bias")
        array = arrays.get(weight.name)
        if array is None:
            array = np.zeros(arrays[kernel].shape[1:], np.float32)
        for name, part in zip(weight.parts, np.split(array, len(weight.parts), axis=-1), strict=True):
            there[name] = np.ascontiguousarray(_moved(part, weight.channels, back).T)
    return there
