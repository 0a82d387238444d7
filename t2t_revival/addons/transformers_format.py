"""Trained models as folders of transformers: MarianMT, and M2M100 of what came from M2M100 or NLLB."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

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
    GENERATION,
    POSITIONS,
    PREFIX,
    SINUSOID,
    TOKENIZER,
    WEIGHTS,
)
from t2t_revival.addons.transformers_layouts import Layout, layout_of
from t2t_revival.data.vocabulary.text_encoder import EOS, PAD
from t2t_revival.utils.extras import require

if TYPE_CHECKING:
    from pathlib import Path

    from t2t_revival.decoding.translator import Translator
    from t2t_revival.model import Transformer
    from t2t_revival.serving.export import Export

SETTINGS = {  # of all models in this format
    "is_encoder_decoder": True,
    "scale_embedding": True,
    "tie_word_embeddings": True,
    "dtype": "float32",
}
LOW, LARGEST = -100.0, 1e4  # a logit of no probability; an element of vectors, within the range of float16
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

    Logits are those of this project but for MarianMT's of padding, and for the norms' epsilon: 1e-5 there.

    Args:
        translator: model, vocabulary and options; the model's precision is float32.
        folder: must not exist.
        about: what the model card says of the training.

    Raises:
        T2TError: the vocabulary is of another kind, or there are two.
    """
    require("safetensors", "--format=transformers")
    from safetensors.numpy import save

    hparams, options, layout = translator.model.hparams, translator.options, layout_of(translator)
    length, targets = translator.max_length + options.extra_length, translator.vocabularies.targets
    files: dict[str, Any] = {
        CONFIG: {
            **SETTINGS,
            **layout.settings,
            **layout.special,
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
            "vocab_size": len(layout.rows),
            "max_position_embeddings": length,
        },
        GENERATION: {
            **layout.special,
            **layout.generation,
            "num_beams": options.beam_size,
            "length_penalty": options.normalize or options.alpha,
            **({"early_stopping": "never"} if options.beam_size > 1 else {}),
            "max_length": length,
            "bad_words_ids": [[token] for token in sorted(layout.banned)],
        },
        TOKENIZER: {
            **layout.tokenizer,
            "pad_token": targets.pieces[PAD],
            "eos_token": targets.pieces[EOS],
            "unk_token": targets.pieces[targets.unknown],
            "model_max_length": length,
            "clean_up_tokenization_spaces": False,  # before 4.45, "Bonjour !" would become "Bonjour!"
            "split_special_tokens": True,  # "</s>" in a text is text, as here
        },
        **layout.files,
    }
    weights = _weights(translator.model, layout, length)
    folder.mkdir()
    for name, content in files.items():
        if not isinstance(content, bytes):
            content = f"{json.dumps(content, ensure_ascii=False, indent=2)}\n".encode()
        (folder / name).write_bytes(content)
    (folder / WEIGHTS[0]).write_bytes(save(weights, metadata={"format": "pt"}))
    name = translator.problem.name if translator.problem else "model"
    source, target = (getattr(translator.problem, f"{side}_lang", "") for side in ("source", "target"))
    card = CARD.format(name=name.replace("_", "-"), source=source, target=target, about=about)
    (folder / "README.md").write_text(card, encoding="utf-8")


def _weights(model: Transformer, layout: Layout, length: int) -> dict[str, np.ndarray]:
    hparams, arrays = model.hparams, arrays_of(model)
    order = channels_there(hparams, hparams.pos == SINUSOID)
    embeddings, bias = arrays[EMBEDDINGS][:, np.argsort(order)], arrays[SOFTMAX_BIAS]
    if (
        not hparams.start_token and embeddings[PAD].any()
    ):  # outputs start with it there; here it is 0 wherever it is looked up
        embeddings[PAD], bias[PAD] = 0, NEVER
    shared = embeddings[layout.rows]
    weights = {SHARED: shared, **layers_there(arrays, hparams, order)}
    if hparams.start_token:
        shared[layout.rows < 0] = _never(
            *(weights[f"decoder.layer_norm.{part}"] for part in ("weight", "bias"))
        )
    elif hparams.pos != SINUSOID:  # transformers has the others by itself
        positions = np.asarray(model.source_positions.encode(np.arange(length)), np.float32)
        weights |= {name: positions.copy() for name in POSITIONS}
    named = {f"{PREFIX}{name}": np.ascontiguousarray(array) for name, array in weights.items()}
    return named if hparams.start_token else {**named, BIAS: bias[layout.rows][None]}


def _never(gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Returns a vector whose logit is always low, as its model has no bias; 0 if there is none.

    The channels of a norm sum to 0 before gamma and beta.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        vector = LOW / gamma / (beta / gamma).sum()
    return vector if np.abs(vector).max() < LARGEST else np.zeros_like(gamma)
