"""Weights of encoder-decoder models as transformers names and lays them out, as this project's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from t2t_revival.addons.imports.model import Shapes
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams

ATTENTION = {"self_attention": "self_attn", "encoder_attention": "encoder_attn"}  # here: there
NORMS = {f"{ours}_residual/norm": f"{theirs}_layer_norm" for ours, theirs in ATTENTION.items()}
NORMS["feed_forward_residual/norm"] = "final_layer_norm"
SSRU = "ssru"  # prefix of the weights of Marian's recurrent unit in place of self_attn
BIAS = "final_logits_bias"
NEVER = -1e4  # bias of what is never produced; within the range of float16


@dataclass
class Layers:
    """The weights of a model.

    Kernels are [out, in] there, and those of queries, keys and values stand side by side here.

    Attributes:
        where: the file, for errors.
        weights: arrays by transformers' names, without "model." before them; each is removed when it is read.
        hparams: of the model.
        rows: for each id here, the row of the embeddings there, of sources and of targets; what has row -1 is
            0, and never produced.
        order: the channel there for each channel of d_model here.
    """

    where: Path
    weights: dict[str, np.ndarray]
    hparams: HParams
    rows: Sequence[Sequence[int]]
    order: np.ndarray

    def arrays(self, shapes: Shapes) -> dict[str, np.ndarray]:
        """Returns the array of each weight of a model with these shapes, by name.

        Raises:
            T2TError: one is missing, or has another shape, or nothing here has it.
        """
        arrays = self._embeddings("source_embedding" in {name.partition("/")[0] for name in shapes})
        for stack, layers in (
            ("encoder", self.hparams.encoder_layers),
            ("decoder", self.hparams.decoder_layers),
        ):
            for layer in range(layers):
                arrays |= self._layer(f"{stack}/layer_{layer}", f"{stack}.layers.{layer}")
            if self.hparams.pre_norm:
                arrays |= self._norm(f"{stack}/final_norm", f"{stack}.layer_norm")
        if self.weights:
            raise T2TError(f"{self.where}: the model has {min(self.weights)}, which has no place here")
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise T2TError(
                    f"{self.where}: the weights of {name} have the shape {arrays[name].shape}, the model's "
                    f"settings require {shape}: they are of another model"
                )
        return arrays

    def _embeddings(self, separate: bool) -> dict[str, np.ndarray]:
        target = self._read("decoder.embed_tokens.weight", "shared.weight")
        tables = {"target_embedding": (target, -1)}
        if separate:
            source = (
                self._read("encoder.embed_tokens.weight")
                if "encoder.embed_tokens.weight" in self.weights
                else target
            )
            tables["source_embedding"] = source, 0
        if not self.hparams.shared_embedding_and_softmax_weights:
            tables["softmax_embedding"] = self._read("lm_head.weight"), -1
        arrays = {}
        for name, (table, side) in tables.items():
            rows = np.array(self.rows[side])
            if table.shape != (shape := (int(rows.max()) + 1, len(self.order))):
                raise T2TError(
                    f"{self.where}: embeddings of the shape {table.shape}; vocabulary and settings require "
                    f"{shape}: they are of another model"
                )
            arrays[f"{name}/embeddings"] = np.where(rows[:, None] < 0, 0, table[rows][:, self.order])
        softmax = "target_embedding" if "softmax_embedding" not in tables else "softmax_embedding"
        rows = np.array(self.rows[-1])
        bias = self._read(BIAS).reshape(-1)
        arrays[f"{softmax}/softmax_bias"] = np.where(rows < 0, NEVER, bias[rows])
        if arrays["target_embedding/embeddings"][0].any():
            raise T2TError(f"{self.where}: the embedding of padding, with which outputs start, is not 0")
        return arrays

    def _layer(self, ours: str, theirs: str) -> dict[str, np.ndarray]:
        order, arrays = self.order, {}
        is_decoder = ours.startswith("decoder")
        for name, part in ATTENTION.items():
            if name == "encoder_attention" and not is_decoder:
                continue
            if name == "self_attention" and is_decoder and self.hparams.decoder_self_attention == "ssru":
                kernels = [
                    self._read(f"{theirs}.{SSRU}.{one}").T[order][:, order] for one in ("forget", "new")
                ]
                arrays[f"{ours}/{name}/kernel"] = np.concatenate(kernels, axis=1)
                arrays[f"{ours}/{name}/forget_bias"] = self._read(f"{theirs}.{SSRU}.forget_bias")[order]
            else:
                arrays |= self._attention(f"{ours}/{name}", f"{theirs}.{part}")
        kernel, bias = self._linear(f"{theirs}.fc1")
        arrays[f"{ours}/feed_forward/kernel_1"], arrays[f"{ours}/feed_forward/bias_1"] = kernel[order], bias
        kernel, bias = self._linear(f"{theirs}.fc2")
        arrays[f"{ours}/feed_forward/kernel_2"] = kernel[:, order]
        arrays[f"{ours}/feed_forward/bias_2"] = bias[order]
        for name, part in NORMS.items():
            if is_decoder or not name.startswith("encoder_attention"):
                arrays |= self._norm(f"{ours}/{name}", f"{theirs}.{part}")
        return arrays

    def _attention(self, ours: str, theirs: str) -> dict[str, np.ndarray]:
        query, key, value = (self._linear(f"{theirs}.{part}_proj") for part in "qkv")
        groups = {"query_key_value": (query, key, value)}
        if ours.endswith("encoder_attention"):
            groups = {"query": (query,), "key_value": (key, value)}
        arrays = {}
        for name, parts in groups.items():
            kernels = [kernel[self.order] for kernel, _ in parts]
            arrays[f"{ours}/{name}"] = np.concatenate(kernels, axis=1)
            arrays[f"{ours}/{name}_bias"] = np.concatenate([bias for _, bias in parts])
        kernel, bias = self._linear(f"{theirs}.out_proj")
        arrays[f"{ours}/output"], arrays[f"{ours}/output_bias"] = kernel[:, self.order], bias[self.order]
        return arrays

    def _norm(self, ours: str, theirs: str) -> dict[str, np.ndarray]:
        parts = {"gamma": "weight", "beta": "bias"}
        return {f"{ours}/{one}": self._read(f"{theirs}.{other}")[self.order] for one, other in parts.items()}

    def _linear(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Returns a kernel, [in, out], and its bias."""
        return self._read(f"{name}.weight").T, self._read(f"{name}.bias")

    def _read(self, *names: str) -> np.ndarray:
        """Returns the first of some weights that is there, as float32."""
        name = next((name for name in names if name in self.weights), None)
        if name is None:
            raise T2TError(f"{self.where}: the weights lack {names[0]}: they are of another model")
        return np.asarray(self.weights.pop(name), np.float32)
