"""MarianMT models of transformers (OPUS-MT on the Hub): their folder as an output_dir."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival import registry
from t2t_revival.addons.imports import tensors
from t2t_revival.addons.imports.kinds import CONFIG
from t2t_revival.addons.imports.layers import SHARED, SOFTMAX, SOURCE, TARGET, Layers
from t2t_revival.addons.imports.model import (
    HPARAMS_SET,
    ImportResult,
    check_config,
    check_unused,
    one_way_problem,
    reading,
    vocabulary_files,
)
from t2t_revival.data.vocabulary.marian import EOS_PIECE, PAD_PIECE, in_order
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model.embedding import sinusoids
from t2t_revival.utils import checked_json

GENERATION, TOKENIZER = "generation_config.json", "tokenizer_config.json"
TABLE, TARGET_TABLE, SPMS = "vocab.json", "target_vocab.json", ("source.spm", "target.spm")
ADDED = "added_tokens.json"
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
INDEX = ".index.json"  # ends the name of the file that lists the shards of weights
ARCHITECTURE = "MarianMTModel"
AGAIN = "get the model again"
ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
EPSILON = 1e-5  # of PyTorch's norms
SUPPORTED: dict[str, tuple[Any, ...]] = {  # values that config.json may have or not
    "scale_embedding": (True,),
    "static_position_embeddings": (True,),
    "normalize_before": (False,),
    "normalize_embedding": (False,),
    "add_final_layer_norm": (False,),
    "tie_word_embeddings": (True, False),
    "share_encoder_decoder_embeddings": (True, False),
}
PREFIX = "model."  # of the names of most weights
POSITIONS = ("encoder.embed_positions.weight", "decoder.embed_positions.weight")
SINUSOID, TIMING = "sinusoid", "timing"


@dataclass(frozen=True)
class MarianMT:
    """Files of a model of transformers.

    Args:
        folder: with config.json, the weights, source.spm, target.spm and vocab.json; and target_vocab.json
            if targets have a vocabulary of their own.

    Attributes:
        config: config.json.
        tables: Marian's id of each piece, of the one vocabulary or those of sources and targets.
        weights: arrays by name.

    Raises:
        T2TError: a file is missing or corrupt, or the model is of another kind; names the first fault.
    """

    folder: Path
    config: dict[str, Any]
    tables: Sequence[dict[str, int]]
    weights: dict[str, np.ndarray]

    @classmethod
    def load(cls, folder: Path) -> MarianMT:
        config = checked_json.read(folder / CONFIG, AGAIN)
        _check(config, folder / CONFIG)
        for name in (TABLE, *SPMS):
            tensors.check_start(folder / name)
        rows = config["vocab_size"]
        tables = [_table(folder / TABLE, rows, config)]
        separate = tokenizer_settings(folder).get("separate_vocabs")
        if separate or not _shares(config):
            path = folder / (TARGET_TABLE if separate else TABLE)
            tables.append(_table(path, config.get("decoder_vocab_size", rows), config))
        return cls(folder, config, tables, read_weights(folder))

    def hparams(self) -> HParams:
        """Returns the hyperparameters of the model, those of `marian_base` where it does not tell."""
        config = self.config
        return with_sizes_of(registry.hparams(HPARAMS_SET), config).replace(
            ffn_activation=ACTIVATIONS[config["activation_function"]],
            norm_epsilon=EPSILON,
            pos=self.pos,
            layer_prepostprocess_dropout=config.get("dropout", 0.1),
            attention_dropout=config.get("attention_dropout", 0.0),
            relu_dropout=config.get("activation_dropout", 0.0),
            shared_embedding_and_softmax_weights=config.get("tie_word_embeddings", True),
        )

    @property
    def pos(self) -> str:
        """The kind of positions: the paper's, or that of T2T and Marian if the weights say so.

        Raises:
            T2TError: the weights have others.
        """
        table = self.weights.get(POSITIONS[0])
        if table is None:
            return SINUSOID
        hidden = self.config["d_model"]
        positions = np.arange(len(table), dtype=np.float32)
        timing = np.asarray(sinusoids(positions, hidden, as_t2t=True))
        paper = np.asarray(sinusoids(positions, hidden))
        halves = np.concatenate([paper[:, ::2], paper[:, 1::2]], axis=1)
        for name, known in ((SINUSOID, halves), (TIMING, timing)):
            if np.abs(table - known).max() < 1e-3:  # cosines of large angles differ by their rounding
                return name
        raise T2TError(f"{self.folder}: {POSITIONS[0]} is not made of sinusoids: learned positions")

    def decode_hparams(self) -> dict[str, Any]:
        """Returns the defaults of decoding: the beam of the folder, and Marian's normalisation."""
        return decode_hparams(self.folder, self.config)

    def layers(self) -> Layers:
        """Returns the weights."""
        hparams, pad = self.hparams(), self.config["pad_token_id"]
        rows = [[table.get(piece, pad) for piece in in_order(table)] for table in self.tables]
        unused = {*POSITIONS}
        if _shares(self.config):
            unused |= {SOURCE, *([TARGET] if SHARED in self.weights else [])}
        if hparams.shared_embedding_and_softmax_weights:
            unused.add(SOFTMAX)
        for name in unused:
            self.weights.pop(name, None)
        return Layers(self.folder, self.weights, hparams, rows, hparams.pos == SINUSOID)


def import_folder(folder: Path, output_dir: Path, problem: str | None = None) -> ImportResult:
    """Writes an output_dir for a MarianMT model of transformers.

    Args:
        folder: see `MarianMT`.
        output_dir: must not hold a model.
        problem: name of a problem. `None` takes `translate_XX_YY` of the languages in tokenizer_config.json.

    Raises:
        T2TError: as `MarianMT`; output_dir holds a model, or the problem is not known. Nothing is written.
    """
    check_unused(output_dir)
    with reading():
        model = MarianMT.load(folder)
        name = one_way_problem(problem or _problem(folder)).name
        files = [(folder / part).read_bytes() for part in SPMS]
        decode_hparams = model.decode_hparams()
    vocabularies = vocabulary_files(name, model.tables, files)
    return model.layers().save(name, vocabularies, decode_hparams, output_dir)


def weight_files(folder: Path) -> list[Path]:
    """Returns the file of the weights, or the shards that an index names, which may be missing.

    Raises:
        T2TError: there is neither, or the index is no JSON.
    """
    for name in WEIGHTS:
        if (folder / name).exists():
            return [folder / name]
        if (index := folder / f"{name}{INDEX}").exists():
            shards = checked_json.read(index, AGAIN).get("weight_map")
            if not isinstance(shards, dict):
                raise T2TError(f"{index}: corrupt, it has no weight_map; {AGAIN}")
            return sorted({folder / Path(str(shard)).name for shard in shards.values()})
    raise T2TError(
        f"{folder}: there is neither {' nor '.join(WEIGHTS)}; get the folder again. Of tf_model.h5 or "
        "flax_model.msgpack, transformers 4 makes one: from_pretrained with from_tf=True or from_flax=True"
    )


def _shares(config: Mapping[str, Any]) -> bool:
    """Returns whether sources and targets have the same embeddings."""
    return bool(config.get("share_encoder_decoder_embeddings", True))


def _table(path: Path, rows: Any, config: Mapping[str, Any]) -> dict[str, int]:
    """Returns the table of a vocabulary; `rows` are those of its embeddings, as config.json says."""
    table = checked_json.read(path, AGAIN)
    try:
        size = len(in_order(table))
    except (ValueError, TypeError) as error:
        raise T2TError(f"{path}: not a table of pieces: {error}") from error
    if size != rows or table.get(PAD_PIECE) != config["pad_token_id"]:
        added = path.with_name(ADDED)
        reason = "the vocabulary of another model, or tokens were added"
        if added.exists():
            reason = f"{ADDED} adds {', '.join(checked_json.read(added, AGAIN))}"
        raise T2TError(
            f"{path}: {size} pieces, {PAD_PIECE} is {table.get(PAD_PIECE)}; {CONFIG} has vocab_size={rows}, "
            f"pad_token_id={config['pad_token_id']}: {reason}. In transformers, "
            f"model.resize_token_embeddings({size}) and save_pretrained remove added tokens"
        )
    if table[EOS_PIECE] != config["eos_token_id"]:
        raise T2TError(f"{path.parent / CONFIG}: eos_token_id={config['eos_token_id']} is not {EOS_PIECE}")
    return table


def with_sizes_of(hparams: HParams, config: Mapping[str, Any]) -> HParams:
    """Returns a copy with the sizes in a config.json."""
    inner = config["decoder_ffn_dim"]
    return hparams.replace(
        num_hidden_layers=config["encoder_layers"],
        num_encoder_layers=config["encoder_layers"],
        num_decoder_layers=config["decoder_layers"],
        hidden_size=config["d_model"],
        filter_size=config["encoder_ffn_dim"],
        decoder_filter_size=inner * (inner != config["encoder_ffn_dim"]),
        num_heads=config["encoder_attention_heads"],
    )


def read_weights(folder: Path) -> dict[str, np.ndarray]:
    """Returns the weights of a folder by their names without "model."; raises as `weight_files`."""
    weights: dict[str, np.ndarray] = {}
    for file in weight_files(folder):
        weights |= {name.removeprefix(PREFIX): array for name, array in tensors.read(file).items()}
    return weights


def decode_hparams(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the defaults of decoding: the beam of a folder, and the normalisation of transformers."""
    path = folder / GENERATION
    settings = {**config, **(checked_json.read(path, AGAIN) if path.exists() else {})}
    beams, exponent = settings.get("num_beams") or 4, settings.get("length_penalty")
    return {"beam_size": beams, "alpha": 0.0, "normalize": 1.0 if exponent is None else exponent}


def tokenizer_settings(folder: Path) -> dict[str, Any]:
    """Returns the settings of a folder's tokenizer; none without their file."""
    path = folder / TOKENIZER
    return checked_json.read(path, AGAIN) if path.exists() else {}


def _problem(folder: Path) -> str:
    path, settings = folder / TOKENIZER, tokenizer_settings(folder)
    name = f"translate_{settings.get('source_lang')}_{settings.get('target_lang')}"
    try:
        return registry.problem(name).name
    except T2TError as error:
        raise T2TError(
            f"{path}: source_lang and target_lang are not two codes such as en and fi: give --problem, "
            "such as --problem=translate_en_fi"
        ) from error


def _check(config: Mapping[str, Any], path: Path) -> None:
    kind = config.get("model_type"), config.get("architectures", [ARCHITECTURE])
    if kind != ("marian", [ARCHITECTURE]):
        raise T2TError(f"{path}: a model of the kind {kind[0]}, {kind[1]}, not {ARCHITECTURE}: not supported")
    sizes = ["encoder_layers", "decoder_layers", "d_model", "encoder_ffn_dim", "decoder_ffn_dim"]
    needed = {
        "activation_function": (*ACTIVATIONS,),
        "decoder_ffn_dim": (config.get("decoder_ffn_dim") or config.get("encoder_ffn_dim"),),
        "decoder_attention_heads": (config.get("encoder_attention_heads"),),
        "decoder_start_token_id": (config.get("pad_token_id"), None),
    }
    whole = {**dict.fromkeys(needed), **config}
    sizes += ["encoder_attention_heads", "vocab_size", "pad_token_id", "eos_token_id"]
    check_config(whole, path, sizes, SUPPORTED | needed)
