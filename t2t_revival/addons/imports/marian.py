"""Models of Marian, such as those of OPUS-MT-train and HPLT: a file of tensors and its vocabularies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival import registry
from t2t_revival.addons.imports import tensors
from t2t_revival.addons.imports.kinds import MARIAN_CONFIG, marian_files
from t2t_revival.addons.imports.layers import BIAS, SHARED, SOURCE, SSRU, TARGET, Layers
from t2t_revival.addons.imports.model import (
    HPARAMS_SET,
    ImportResult,
    check_config,
    check_unused,
    one_way_problem,
    reading,
    vocabulary_files,
)
from t2t_revival.data.vocabulary.marian import in_order, table_of
from t2t_revival.decoding.options import SETTINGS, UNLIMITED
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams

EPSILON = 1e-6  # of Marian's norms
POST_NORM = {
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-top": "",
}
PRE_NORM = dict(zip(POST_NORM, ("n", "da", "n"), strict=True))
WHOLE_PRE_NORM = (1, 11)  # the version from which Marian trains with normalised keys, not queries alone
MAX_LENGTH_FACTOR = 3  # Marian's default
SUPPORTED: dict[str, tuple[Any, ...]] = {  # settings that a model may have or not, and their values
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention", "rnn"),
    "transformer-ffn-activation": ("relu", "swish"),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-no-projection": (False,),
    "transformer-rnn-projection": (False,),
    "transformer-tied-layers": ([],),
    "transformer-train-position-embeddings": (False,),
    "transformer-disable-position-embeddings": (False,),
    "transformer-attention-mask": ("default",),
    "transformer-no-affine": (False,),
    "right-left": (False,),
    "input-types": ([], ["sequence", "sequence"]),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-pool": (False,),
    "lemma-dim-emb": (0,),
    "ulr": (False,),
}
SEARCH: dict[str, tuple[Any, ...]] = {  # the same of decoder.yml
    "word-penalty": (0,),
    "allow-unk": (False,),
    "output-sampling": (False, []),
    "shortlist": ([],),
}


def _names() -> dict[str, str]:
    """Returns transformers' names of the weights of a layer by Marian's."""
    norm = {"ln_scale": "weight", "ln_bias": "bias"}
    names = {"rnn_W": f"{SSRU}.new", "rnn_Wf": f"{SSRU}.forget", "rnn_bf": f"{SSRU}.forget_bias"}
    for part, name in (("self", "self_attn"), ("context", "encoder_attn")):
        for letter, projection in zip("qkvo", ("q_proj", "k_proj", "v_proj", "out_proj"), strict=True):
            names[f"{part}_W{letter}"] = f"{name}.{projection}.weight"
            names[f"{part}_b{letter}"] = f"{name}.{projection}.bias"
    for number in "12":
        names[f"ffn_W{number}"], names[f"ffn_b{number}"] = f"fc{number}.weight", f"fc{number}.bias"
    norms = {"self_Wo": "self_attn_layer_norm", "context_Wo": "encoder_attn_layer_norm"}
    norms["ffn_ffn"] = "final_layer_norm"
    for more, suffix in (("rnn", "_pre"), ("rnn_ffn", "")):  # of pre-norm; and post-norm, which is exported
        for theirs, ours in {**norms, more: "self_attn_layer_norm"}.items():
            names |= {f"{theirs}_{end}{suffix}": f"{ours}.{norm[end]}" for end in norm}
    return names


OF_LAYERS = _names()
OTHERS = {
    "Wemb": "shared.weight",
    "encoder_Wemb": "encoder.embed_tokens.weight",
    "decoder_Wemb": "decoder.embed_tokens.weight",
    "decoder_ff_logit_out_W": "lm_head.weight",  # of old versions, transposed
    "decoder_ff_logit_out_Wt": "lm_head.weight",
    "decoder_ff_logit_out_b": BIAS,
    "encoder_top_ln_scale": "encoder.layer_norm.weight",
    "encoder_top_ln_bias": "encoder.layer_norm.bias",
    "decoder_top_ln_scale": "decoder.layer_norm.weight",
    "decoder_top_ln_bias": "decoder.layer_norm.bias",
}
LAYER = re.compile(r"(encoder|decoder)_l(\d+)_(\w+)")


@dataclass(frozen=True)
class MarianModel:
    """A model of Marian.

    Attributes:
        path: the file.
        config: its settings.
        weights: arrays by transformers' names.
        search: settings of decoder.yml beside it; empty without one.
    """

    path: Path
    config: Mapping[str, Any]
    weights: dict[str, np.ndarray]
    search: Mapping[str, Any]

    @classmethod
    def load(cls, path: Path) -> MarianModel:
        """Reads a file, .npz or .bin, or that of a folder.

        Raises:
            T2TError: a file is missing or corrupt, or the model is of another kind; names the first fault.
        """
        folder = path if path.is_dir() else path.parent
        settings = next(iter(sorted(folder.glob("*decoder.yml"))), folder / "decoder.yml")
        search = _yaml(settings.read_bytes(), str(settings)) if settings.exists() else {}
        check_config(search, settings, (), SEARCH)
        file = _model_file(folder, search) if path.is_dir() else path
        arrays = tensors.read(file)
        if MARIAN_CONFIG not in arrays:
            raise T2TError(f"{file}: no model of Marian: it lacks {MARIAN_CONFIG}")
        config = _yaml(arrays.pop(MARIAN_CONFIG).tobytes().rstrip(b"\0"), f"{file}: {MARIAN_CONFIG}")
        _check(config, file)
        weights = _renamed(arrays, file)
        if config.get("output-omit-bias"):
            rows = len(weights.get(TARGET, weights.get(SHARED, ())))
            weights[BIAS] = np.zeros((1, rows), np.float32)
        return cls(file, config, weights, search)

    def hparams(self) -> HParams:
        """Returns the hyperparameters of the model, those of `marian_base` where it does not tell."""
        config, inner = self.config, self.config.get("transformer-decoder-dim-ffn") or 0
        return registry.hparams(HPARAMS_SET).replace(
            num_hidden_layers=config["enc-depth"],
            num_encoder_layers=config["enc-depth"],
            num_decoder_layers=config["dec-depth"],
            hidden_size=config["dim-emb"],
            filter_size=config["transformer-dim-ffn"],
            decoder_filter_size=inner * (inner != config["transformer-dim-ffn"]),
            num_heads=config["transformer-heads"],
            ffn_activation=config.get("transformer-ffn-activation", "swish"),
            norm_epsilon=EPSILON,
            layer_preprocess_sequence=config.get("transformer-preprocess") or "none",
            layer_postprocess_sequence=config.get("transformer-postprocess", "dan"),
            decoder_self_attention="ssru"
            if config.get("transformer-decoder-autoreg") == "rnn"
            else "attention",
            shared_embedding_and_softmax_weights="lm_head.weight" not in self.weights,
        )

    def decode_hparams(self) -> dict[str, Any]:
        """Returns the defaults of decoding, those of decoder.yml where there is one."""
        values = {"beam_size": (int, "beam-size", 4), "normalize": (float, "normalize", 1.0)}
        values["max_length_factor"] = (float, "max-length-factor", MAX_LENGTH_FACTOR)
        try:
            own = {name: kind(self.search.get(key, usual)) for name, (kind, key, usual) in values.items()}
        except (TypeError, ValueError) as error:
            raise T2TError(f"{self.path.parent}: decoder.yml: {error}") from error
        beyond = (own["max_length_factor"] - 1) * self.hparams().max_length
        extra_length = min(max(UNLIMITED, beyond), SETTINGS["extra_length"].most)
        return {**own, "alpha": 0.0, "extra_length": int(extra_length)}


def import_model(
    path: Path, output_dir: Path, problem: str | None, vocab_files: Sequence[Path] = ()
) -> ImportResult:
    """Writes an output_dir for a model of Marian.

    Args:
        path: a .npz or .bin file, or a folder with one; beside it are the vocabularies and, where these are
            no SentencePiece models, source.spm and target.spm.
        output_dir: must not hold a model.
        problem: name of a problem.
        vocab_files: of sources and targets: yaml, or SentencePiece models. None takes those of decoder.yml.

    Raises:
        T2TError: as `MarianModel.load`; output_dir holds a model, a vocabulary is missing or another model's,
            or the problem is not known. Nothing is written then.
    """
    check_unused(output_dir)
    with reading():
        model = MarianModel.load(path)
    if not problem:
        raise T2TError(
            "a model of Marian has no languages: give --problem, such as --problem=translate_en_fi"
        )
    name = one_way_problem(problem).name
    with reading():
        tables, models = _vocabularies(model, vocab_files)
    rows = [[table.get(piece, -1) for piece in in_order(table)] for table in tables]
    layers = Layers(model.path, model.weights, model.hparams(), rows, starts_with_padding=False)
    vocabularies = vocabulary_files(name, tables, models)
    return layers.save(name, vocabularies, model.decode_hparams(), output_dir)


def _model_file(folder: Path, search: Mapping[str, Any]) -> Path:
    named = search.get("models")
    if isinstance(named, list) and len(named) == 1:
        return folder / Path(str(named[0])).name
    files = marian_files(folder)
    if len(files) != 1:
        raise T2TError(f"{folder}: {len(files)} models: give one of them: --checkpoint=FILE.npz")
    return files[0]


def _vocabularies(model: MarianModel, given: Sequence[Path]) -> tuple[list[dict[str, int]], list[bytes]]:
    """Returns the table of both sides, or that of each, and the SentencePiece models of source and target."""
    folder = model.path.parent
    listed = model.search.get("vocabs")
    named = [folder / Path(str(file)).name for file in listed] if isinstance(listed, list) else []
    files = [*given] or named
    if not files or len(files) > 2:
        raise T2TError(f"{folder}: its vocabularies are not known: give --vocab_file=SOURCE,TARGET")
    sides = []
    for file, spm in ((files[0], "source.spm"), (files[-1], "target.spm")):
        content = file.read_bytes()
        is_spm = file.suffix == ".spm"
        table = table_of(content, file) if is_spm else _table(content, file)
        sides.append((table, content if is_spm else (folder / spm).read_bytes()))
    tables, models = [table for table, _ in sides], [spm for _, spm in sides]
    separate = tables[0] != tables[1] or SOURCE in model.weights
    return (tables if separate else tables[:1]), models


def _table(content: bytes, path: Path) -> dict[str, int]:
    try:
        table = {piece: int(number) for piece, number in _yaml(content, str(path), texts=True).items()}
        in_order(table)
    except (ValueError, TypeError) as error:
        raise T2TError(f"{path}: not a vocabulary of Marian: {error}") from error
    return table


def _renamed(arrays: Mapping[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """Returns weights by transformers' names, in its layout: kernels [out, in], vectors of one dimension.

    Unknown ones keep their names.
    """
    renamed = {}
    for name, array in arrays.items():
        if array.dtype.kind != "f":
            raise T2TError(f"{path}: {name} is of the type {array.dtype}, not of floating-point numbers")
        ours = OTHERS.get(name, name)
        if (match := LAYER.fullmatch(name)) and match[3] in OF_LAYERS:
            ours = f"{match[1]}.layers.{int(match[2]) - 1}.{OF_LAYERS[match[3]]}"
        is_table = name.endswith(("Wemb", "_Wt"))
        renamed[ours] = array if is_table else array.reshape(-1) if 1 in array.shape else array.T
    return renamed


def names_there(weights: Mapping[str, np.ndarray], hparams: HParams) -> dict[str, np.ndarray]:
    """Returns weights of encoder and decoder by Marian's names, in its layout: `_renamed` undone.

    Args:
        weights: by transformers' names, in its layout.
        hparams: of the model.
    """
    recurrent = hparams.decoder_self_attention == SSRU
    of_layers = {
        (stack, ours): theirs
        for stack in ("encoder", "decoder")
        for theirs, ours in OF_LAYERS.items()
        if not ours.startswith("self_attn") or theirs.startswith("rnn") == (stack == "decoder" and recurrent)
    }
    there = {}
    for name, array in weights.items():
        stack, _, layer, part = name.split(".", 3)
        theirs = f"{stack}_l{int(layer) + 1}_{of_layers[stack, part]}"
        there[theirs] = array.T if array.ndim == 2 else array[None]
    return there


def _check(config: Mapping[str, Any], path: Path) -> None:
    is_pre_norm = config.get("transformer-preprocess") == "n"
    order = PRE_NORM if is_pre_norm else POST_NORM
    supported = SUPPORTED | {name: (operations,) for name, operations in order.items()}
    if config.get("transformer-decoder-autoreg") == "rnn":
        supported["dec-cell"] = ("ssru",)
    numbers = ("enc-depth", "dec-depth", "dim-emb", "transformer-dim-ffn", "transformer-heads")
    check_config(config, path, numbers, supported)
    version = str(config.get("version", "of an unknown version"))
    if is_pre_norm and (*map(int, re.findall(r"\d+", version)[:2]),) < WHOLE_PRE_NORM:
        raise T2TError(
            f"{path}: transformer-preprocess='n' of Marian {version}, which normalises only the queries of "
            "self-attention, is not supported, but that of Marian 1.11 and later"
        )


def _yaml(content: bytes, where: str, texts: bool = False) -> dict[str, Any]:
    """Returns a mapping, whose values are all texts with `texts`."""
    import yaml

    kinds = ("CBaseLoader", "BaseLoader") if texts else ("CSafeLoader", "SafeLoader")
    loader = getattr(yaml, kinds[0], None) or getattr(yaml, kinds[1])
    try:
        values = yaml.load(content.decode("utf-8"), loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise T2TError(f"{where}: corrupt, not YAML: {str(error).splitlines()[0]}; get it again") from error
    if not isinstance(values, dict):
        raise T2TError(f"{where}: corrupt, not a mapping; get it again")
    return values
