"""Small models as transformers writes M2M100 and NLLB, of random weights."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from safetensors.numpy import save_file

from tests.support.marian_models import LINES, ZIELE

M2M100, NLLB = "m2m100", "nllb"
CODES = {M2M100: ("en", "de"), NLLB: ("eng_Latn", "deu_Latn")}
NLLB_LANGUAGES = ["ace_Arab", "deu_Latn", "eng_Latn", "fin_Latn", "zho_Hans", "zho_Hant"]
SIZES = {"d_model": 16, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
TEXT = (*LINES * 3, *ZIELE * 3, *["Ω ж 猫 ¿"] * 3)
MODEL = {  # hyperparameters of all such models
    "pos": "fairseq",
    "start_token": 1,
    "layer_preprocess_sequence": "n",
    "layer_postprocess_sequence": "da",
    "softmax_bias": False,
}
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


@cache
def spm(lines: tuple[str, ...] = TEXT) -> bytes:
    """Returns a SentencePiece model with ids as fairseq has them."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        model_type="bpe",
        vocab_size=160,
        hard_vocab_limit=False,
        character_coverage=1.0,
        minloglevel=2,
    )
    return written.getvalue()


def pieces(model: bytes | None = None) -> list[str]:
    """Returns the pieces of that model, without its special ones."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model or spm())
    return [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]


def random_weights(rows: int, layers: int = 2, seed: int = 1) -> dict[str, np.ndarray]:
    """Returns weights by transformers' names."""
    draw = np.random.default_rng(seed)
    hidden, inner = SIZES["d_model"], SIZES["encoder_ffn_dim"]
    shapes: dict[str, tuple[int, ...]] = {"model.shared.weight": (rows, hidden)}
    for stack, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        for layer in range(layers):
            path = f"model.{stack}.layers.{layer}"
            for attention in attentions:
                for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    shapes[f"{path}.{attention}.{projection}.weight"] = (hidden, hidden)
                    shapes[f"{path}.{attention}.{projection}.bias"] = (hidden,)
            for norm in [*(f"{attention}_layer_norm" for attention in attentions), "final_layer_norm"]:
                shapes |= {f"{path}.{norm}.{part}": (hidden,) for part in ("weight", "bias")}
            shapes |= {f"{path}.fc1.weight": (inner, hidden), f"{path}.fc1.bias": (inner,)}
            shapes |= {f"{path}.fc2.weight": (hidden, inner), f"{path}.fc2.bias": (hidden,)}
        shapes |= {f"model.{stack}.layer_norm.{part}": (hidden,) for part in ("weight", "bias")}
    weights = {name: draw.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    for name in weights:
        weights[name] += np.float32(name.endswith("norm.weight"))
    weights["model.shared.weight"][1] = 0  # padding
    return weights


def write_multilingual(
    folder: Path,
    kind: str = M2M100,
    changes: Mapping[str, Any] | None = None,
    weights: Mapping[str, np.ndarray] | None = None,
    legacy: bool = False,
    lines: Sequence[str] = TEXT,
) -> Path:
    """Writes a folder of M2M100 or NLLB; `changes` are those of config.json."""
    folder.mkdir(parents=True)
    model = spm(tuple(lines))
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    table = {piece: row for row, piece in enumerate([*SPECIAL, *pieces(model)])}
    tokenizer: dict[str, Any] = {"src_lang": CODES[kind][0], "tgt_lang": CODES[kind][1]}
    if kind == M2M100:
        (folder / "vocab.json").write_text(json.dumps(table))
        rows = len(table) + 108
        tokenizer |= {"tokenizer_class": "M2M100Tokenizer", "language_codes": "m2m100"}
    else:
        rows = len(table) + len(NLLB_LANGUAGES) + 3
        added = SPECIAL + NLLB_LANGUAGES + ["<mask>"]
        ids = [0, 1, 2, 3, *range(len(table), len(table) + len(NLLB_LANGUAGES) + 1)]
        tokens = [{"id": number, "content": piece} for number, piece in zip(ids, added, strict=True)]
        (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": tokens}))
        tokenizer |= {"tokenizer_class": "NllbTokenizer", "legacy_behaviour": legacy}
    config = {
        "model_type": "m2m_100",
        "architectures": ["M2M100ForConditionalGeneration"],
        **SIZES,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "vocab_size": rows,
        "activation_function": "relu",
        "scale_embedding": True,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "max_position_embeddings": 128,
        "tie_word_embeddings": True,
        **(changes or {}),
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    arrays = dict(random_weights(rows) if weights is None else weights)
    save_file(arrays, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
