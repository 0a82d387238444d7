"""Small models as transformers and Marian write them, of the weights in tests/reference/marian_mt.npz."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import yaml
from safetensors.numpy import save_file

from t2t_revival.data.vocabulary.marian import pack

REFERENCE = Path(__file__).parents[1] / "reference" / "marian_mt.npz"
PIECES = 120  # of the model, <pad> included
LINES = [
    "The old dog sleeps near the river, and two children play.",
    "Seven small houses stand by the long road; nobody walks there today.",
    "We bought fresh bread and cheese from that quiet village shop.",
]
ZIELE = [
    "Der alte Hund schläft am Fluss, und zwei Kinder spielen.",
    "Sieben kleine Häuser stehen an der langen Straße; niemand geht heute dort.",
    "Wir kauften frisches Brot und Käse in dem stillen Dorfladen.",
]
SETTINGS = {  # Marian's, of this model
    "type": "transformer",
    "enc-depth": 2,
    "dec-depth": 1,
    "dim-emb": 16,
    "transformer-dim-ffn": 24,
    "transformer-heads": 2,
    "transformer-ffn-activation": "swish",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-no-projection": False,
    "transformer-decoder-autoreg": "self-attention",
    "transformer-guided-alignment-layer": "last",
    "transformer-ffn-depth": 2,
    "tied-embeddings-all": True,
    "version": "v1.12.0",
}


def reference() -> dict[str, np.ndarray]:
    """Returns the arrays of the reference."""
    with np.load(REFERENCE) as arrays:
        return dict(arrays)


def reference_weights() -> dict[str, np.ndarray]:
    """Returns its weights by transformers' names."""
    found = reference().items()
    return {name.removeprefix("weights/"): array for name, array in found if name.startswith("weights/")}


def sentencepiece_model(lines: list[str], kind: str, size: int = 55) -> bytes:
    """Trains a model as Marian has them: "</s>" is 0 and "<unk>" 1."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 3),
        model_writer=written,
        model_type=kind,
        vocab_size=size,
        eos_id=0,
        unk_id=1,
        bos_id=-1,
        pad_id=-1,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return written.getvalue()


def models() -> tuple[bytes, bytes]:
    """Returns the SentencePiece models of sources and targets, of two kinds."""
    return sentencepiece_model(LINES, "unigram"), sentencepiece_model(ZIELE, "bpe")


def table(*spms: bytes, size: int = PIECES - 1) -> dict[str, int]:
    """Returns Marian's ids of their pieces, of some tags and of fillers."""
    pieces = ["</s>", "<unk>", ">>deu<<", ">>nds<<"]
    for spm in spms:
        processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
        pieces += [processor.id_to_piece(number) for number in range(2, processor.get_piece_size())]
    pieces = list(dict.fromkeys(pieces))[:size]
    pieces += [f"<filler{number}>" for number in range(size - len(pieces))]
    return {piece: number for number, piece in enumerate(pieces)}


def vocabulary_content() -> bytes:
    """Returns the content of the vocabulary file of the model."""
    source, target = models()
    return pack({**table(source, target), "<pad>": PIECES - 1}, source, target)


def write_marian_mt(
    folder: Path, changes: Mapping[str, Any] | None = None, weights: Mapping[str, np.ndarray] | None = None
) -> Path:
    """Writes a MarianMT folder; `changes` are those of config.json, where None removes a setting."""
    folder.mkdir(parents=True, exist_ok=True)
    source, target = models()
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    (folder / "vocab.json").write_text(json.dumps({**table(source, target), "<pad>": PIECES - 1}))
    config = json.loads(str(reference()["config"])) | dict(changes or {})
    config = {name: value for name, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps({"architectures": ["MarianMTModel"], **config}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "de"}))
    arrays = dict(reference_weights() if weights is None else weights)
    save_file(arrays, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def write_two_vocabularies(folder: Path, tied: bool = True) -> Path:
    """Writes a MarianMT folder whose sides have a table and embeddings each, with pieces in other orders.

    The embeddings of sources are those of `write_marian_mt` in reverse, those of targets are halved. With
    `tied` False the softmax has its own.
    """
    weights = reference_weights()
    shared = weights.pop("model.shared.weight")
    order = [0, 1, *range(PIECES - 2, 1, -1), PIECES - 1]
    weights["model.encoder.embed_tokens.weight"] = shared[order]
    weights["model.decoder.embed_tokens.weight"] = 0.5 * shared
    weights["lm_head.weight"] = (0.5 if tied else 1.5) * shared
    changes = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": PIECES}
    write_marian_mt(folder, {**changes, "tie_word_embeddings": tied}, weights)
    pieces = json.loads((folder / "vocab.json").read_text())
    (folder / "target_vocab.json").write_text(json.dumps(pieces))
    (folder / "vocab.json").write_text(json.dumps({piece: order[number] for piece, number in pieces.items()}))
    settings = {"source_lang": "en", "target_lang": "de", "separate_vocabs": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def marian_weights() -> dict[str, np.ndarray]:
    """Returns the same weights by Marian's names, in its layout, without <pad>."""
    theirs = reference_weights()
    parts = {"self": "self_attn", "context": "encoder_attn"}
    projections = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}
    arrays = {"Wemb": theirs["model.shared.weight"][:-1]}
    arrays["decoder_ff_logit_out_b"] = theirs["final_logits_bias"][:, :-1]
    for stack, layers, attentions in (("encoder", 2, ["self"]), ("decoder", 1, ["self", "context"])):
        for layer in range(layers):
            path, to = f"model.{stack}.layers.{layer}.", f"{stack}_l{layer + 1}_"
            for part in attentions:
                for letter, name in projections.items():
                    linear = f"{path}{parts[part]}.{name}"
                    arrays[f"{to}{part}_W{letter}"] = theirs[f"{linear}.weight"].T
                    arrays[f"{to}{part}_b{letter}"] = theirs[f"{linear}.bias"][None]
            for number in "12":
                arrays[f"{to}ffn_W{number}"] = theirs[f"{path}fc{number}.weight"].T
                arrays[f"{to}ffn_b{number}"] = theirs[f"{path}fc{number}.bias"][None]
            norms = {f"{part}_Wo": f"{parts[part]}_layer_norm" for part in attentions}
            for ours, name in {**norms, "ffn_ffn": "final_layer_norm"}.items():
                arrays[f"{to}{ours}_ln_scale"] = theirs[f"{path}{name}.weight"][None]
                arrays[f"{to}{ours}_ln_bias"] = theirs[f"{path}{name}.bias"][None]
    return arrays


def write_marian(
    folder: Path,
    settings: Mapping[str, Any] | None = None,
    weights: Mapping[str, np.ndarray] | None = None,
    spm_vocabulary: bool = False,
) -> Path:
    """Writes the same model as Marian does; returns its .npz file.

    Vocabularies are yaml, or with `spm_vocabulary` a SentencePiece model of 119 pieces.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source, target = models()
    config = yaml.safe_dump({**SETTINGS, **(settings or {})}).encode() + b"\0"
    arrays = dict(marian_weights() if weights is None else weights)
    arrays["special:model.yml"] = np.frombuffer(config, np.int8)
    np.savez(folder / "model.npz", **arrays)  # type: ignore[arg-type]  # of NumPy's stubs
    names = ["vocab.yml"] * 2
    if spm_vocabulary:
        names = ["vocab.spm"] * 2
        (folder / "vocab.spm").write_bytes(source)
    else:
        lines = [
            f"{json.dumps(piece, ensure_ascii=False)}: {number}"
            for piece, number in table(source, target).items()
        ]
        (folder / "vocab.yml").write_text("\n".join(lines) + "\n")
        (folder / "source.spm").write_bytes(source)
        (folder / "target.spm").write_bytes(target)
    search = {"models": ["model.npz"], "vocabs": names, "beam-size": 6, "normalize": 0.6}
    (folder / "decoder.yml").write_text(yaml.safe_dump(search))
    return folder / "model.npz"
