"""Trained models as MarianMT folders of transformers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_revival.addons.imports.kinds import CONFIG
from t2t_revival.addons.imports.layers import (
    BIAS,
    EMBEDDINGS,
    NEVER,
    SHARED,
    SOFTMAX_BIAS,
    arrays_of,
    channels_there,
    layers_there,
)
from t2t_revival.addons.imports.transformers import (
    ARCHITECTURE,
    GENERATION,
    POSITIONS,
    PREFIX,
    SINUSOID,
    SPMS,
    TABLE,
    TOKENIZER,
    WEIGHTS,
)
from t2t_revival.data.vocabulary.marian import MarianVocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.text_encoder import EOS, PAD
from t2t_revival.errors import T2TError
from t2t_revival.utils.extras import require

if TYPE_CHECKING:
    from pathlib import Path

    from t2t_revival.data.vocabulary import Vocabularies
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.model import Transformer
    from t2t_revival.serving.export import Export

SETTINGS = {  # of all models in this format
    "architectures": [ARCHITECTURE],
    "model_type": "marian",
    "is_encoder_decoder": True,
    "scale_embedding": True,
    "static_position_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "tie_word_embeddings": True,
    "share_encoder_decoder_embeddings": True,
    "dtype": "float32",
}
CARD = """\
---
library_name: transformers
pipeline_tag: translation
language: [{source}, {target}]
---

# {name}

Translates {source} to {target}. {about}

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModelForSeq2SeqLM.from_pretrained("{name}")
batch = tokenizer(["..."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
```

Made by `t2t-exporter --format=transformers`.
"""


def export_transformers(what: Export) -> tuple[Path, str]:
    """Writes a version; also returns the Python that loads it. See `write_transformers`."""
    version = what.write_version(lambda folder: write_transformers(what.translator, folder, what.about))
    return version, f"next, in Python: transformers.AutoModelForSeq2SeqLM.from_pretrained({str(version)!r})"


def write_transformers(translator: Translator, folder: Path, about: str) -> None:
    """Writes a folder that `AutoModelForSeq2SeqLM.from_pretrained` and `AutoTokenizer` load.

    Logits are those of this project but for those of padding, and for the norms' epsilon: 1e-5 there.

    Args:
        translator: model, vocabulary and options; the model's precision is float32.
        folder: must not exist.
        about: what the model card says of the training.

    Raises:
        T2TError: the vocabulary is T2T's, or there are two.
    """
    require("safetensors", "--format=transformers")
    from safetensors.numpy import save

    hparams, options = translator.model.hparams, translator.options
    tokens = _Tokens.of(translator.vocabularies)
    length = translator.max_length + options.extra_length
    special = {
        "pad_token_id": tokens.ids[tokens.pieces[PAD]],
        "eos_token_id": tokens.ids[tokens.pieces[EOS]],
        "decoder_start_token_id": tokens.ids[tokens.pieces[PAD]],
    }
    special["forced_eos_token_id"] = special["eos_token_id"]
    banned = {special["pad_token_id"], tokens.ids[tokens.pieces[translator.vocabularies.targets.banned]]}
    source, target = (getattr(translator.problem, f"{side}_lang", "") for side in ("source", "target"))
    files = {
        CONFIG: {
            **SETTINGS,
            **special,
            "d_model": hparams.hidden_size,
            "activation_function": hparams.ffn_activation,
            "dropout": hparams.layer_prepostprocess_dropout,
            "attention_dropout": hparams.attention_dropout,
            "activation_dropout": hparams.relu_dropout,
            "encoder_layers": hparams.encoder_layers,
            "decoder_layers": hparams.decoder_layers,
            **dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads"], hparams.num_heads),
            "encoder_ffn_dim": hparams.filter_size,
            "decoder_ffn_dim": hparams.decoder_channels,
            "vocab_size": len(tokens.ids),
            "max_position_embeddings": length,
        },
        GENERATION: {
            **special,
            "num_beams": options.beam_size,
            "length_penalty": options.normalize or options.alpha,
            **({"early_stopping": "never"} if options.beam_size > 1 else {}),
            "max_length": length,
            "bad_words_ids": [[token] for token in sorted(banned)],
        },
        TOKENIZER: {
            "tokenizer_class": "MarianTokenizer",
            "pad_token": tokens.pieces[PAD],
            "eos_token": tokens.pieces[EOS],
            "unk_token": tokens.pieces[translator.vocabularies.targets.unknown],
            "model_max_length": length,
            "separate_vocabs": False,
            "clean_up_tokenization_spaces": False,  # before 4.45, "Bonjour !" would become "Bonjour!"
            "split_special_tokens": True,  # "</s>" in a text is text, as here
            "source_lang": source,
            "target_lang": target,
        },
        TABLE: tokens.ids,
    }
    folder.mkdir()
    for name, values in files.items():
        (folder / name).write_text(json.dumps(values, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    for name, model in zip(SPMS, (tokens.source, tokens.target), strict=True):
        (folder / name).write_bytes(model)
    weights = _weights(translator.model, tokens, length)
    (folder / WEIGHTS[0]).write_bytes(save(weights, metadata={"format": "pt"}))
    name = translator.problem.name if translator.problem else "model"
    card = CARD.format(name=name.replace("_", "-"), source=source, target=target, about=about)
    (folder / "README.md").write_text(card, encoding="utf-8")


class _Tokens(NamedTuple):
    """The pieces of a vocabulary, by their ids here; their ids there; and the SentencePiece models."""

    pieces: list[str]
    ids: dict[str, int]
    source: bytes
    target: bytes

    @classmethod
    def of(cls, vocabularies: Vocabularies) -> _Tokens:
        inputs, targets = vocabularies
        if vocabularies.separate or isinstance(inputs, SubwordVocabulary):
            raise T2TError(
                "transformers' format has one SentencePiece vocabulary; this model has another kind"
            )
        if isinstance(inputs, MarianVocabulary) and isinstance(targets, MarianVocabulary):
            ids = dict(inputs.marian_ids)
            ids.setdefault(inputs.pieces[PAD], len(ids))
            return cls(inputs.pieces, ids, inputs.model, targets.model)
        ids = {piece: token for token, piece in enumerate(inputs.pieces)}
        return cls(inputs.pieces, ids, inputs.content, inputs.content)


def _weights(model: Transformer, tokens: _Tokens, length: int) -> dict[str, np.ndarray]:
    hparams, arrays = model.hparams, arrays_of(model)
    order = channels_there(hparams, hparams.pos == SINUSOID)
    embeddings, bias = arrays[EMBEDDINGS][:, np.argsort(order)], arrays[SOFTMAX_BIAS]
    if embeddings[PAD].any():  # outputs start with it there; here it is 0 wherever it is looked up
        embeddings[PAD], bias[PAD] = 0, NEVER
    rows = np.zeros(len(embeddings), int)  # the id here of each id there
    rows[[tokens.ids[piece] for piece in tokens.pieces]] = np.arange(len(rows))
    weights = {SHARED: embeddings[rows], **layers_there(arrays, hparams, order)}
    if hparams.pos != SINUSOID:  # transformers has the paper's by itself
        positions = np.asarray(model.source_positions.encode(np.arange(length)), np.float32)
        weights |= {name: positions.copy() for name in POSITIONS}
    named = {f"{PREFIX}{name}": np.ascontiguousarray(array) for name, array in weights.items()}
    return {**named, BIAS: bias[rows][None]}
