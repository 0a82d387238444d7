"""A trained model as a CTranslate2 model, for those who want that engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_revival.data.vocabulary import EOS, PAD
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.model import Transformer
    from t2t_revival.model.attention import MultiHeadAttention
    from t2t_revival.model.embedding import Positions
    from t2t_revival.model.feed_forward import FeedForward

LEAST_POSITIONS = 1024  # CTranslate2 refuses a position that is not in its table
NEVER = -1e4  # bias of PAD, so that it is never produced; within the range of float16
VOCABULARY = "vocabulary"  # the file's name without its suffix, which tells its kind


def write_ctranslate2(translator: Translator, folder: Path, quantize: str = "none") -> None:
    """Writes what `ctranslate2.Translator(folder)` loads, and the vocabulary beside it.

    That engine takes and gives pieces of the vocabulary; the EOS of its inputs is added by it. Its length
    penalty is another: log-probability / length^alpha.

    Args:
        translator: its model, vocabulary and options.
        folder: made here; must not exist.
        quantize: "none" (float32), "bfloat16" or "int8", of CTranslate2's own scheme.

    Raises:
        T2TError: the package `ctranslate2` is missing, or has no place for such a model.
    """
    vocabulary = translator.vocabulary
    spec = _spec(translator.model, translator.max_length + translator.options.extra_length)
    spec.register_source_vocabulary(vocabulary.pieces)
    spec.register_target_vocabulary(vocabulary.pieces)
    config = spec.config
    config.decoder_start_token = config.bos_token = vocabulary.pieces[PAD]  # only its name is used
    config.eos_token, config.unk_token = vocabulary.pieces[EOS], vocabulary.pieces[vocabulary.unknown]
    config.add_source_eos = True
    config.layer_norm_epsilon = translator.model.hparams.norm_epsilon
    spec.validate()
    try:
        spec.optimize(quantization=None if quantize == "none" else quantize)
    except RuntimeError as error:  # CTranslate2 converts to bfloat16 by PyTorch
        raise T2TError(f"CTranslate2: --quantize={quantize}: {error}") from error
    folder.mkdir()
    spec.save(str(folder))
    (folder / VOCABULARY).with_suffix(vocabulary.path.suffix).write_bytes(vocabulary.content)


def _spec(model: Transformer, positions: int) -> Any:
    """The weights in CTranslate2's places, float32."""
    try:
        from ctranslate2.specs import transformer_spec
    except ImportError as error:
        raise T2TError("--format=ctranslate2 needs one more package: pip install -U ctranslate2") from error

    h = model.hparams
    if h.key_channels != h.value_channels:
        sizes = f"{h.key_channels} and {h.value_channels}"
        raise T2TError(f"CTranslate2 has one size for keys and values, this model {sizes} channels")
    if h.deterministic_attention:
        raise T2TError("CTranslate2 has no deterministic attention, which this model has")
    if h.attention_window:
        raise T2TError("CTranslate2 has no restricted attention, which this model has (attention_window)")
    kind = {"pre_norm": h.pre_norm, "head_dim": h.key_channels // h.num_heads}
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(h.encoder_layers, h.num_heads, **kind),
        transformer_spec.TransformerDecoderSpec(h.decoder_layers, h.num_heads, **kind),
    )
    encoder, decoder = spec.encoder, spec.decoder
    length = max(positions, LEAST_POSITIONS)
    encoder.embeddings[0].weight = _array(model.source_embedding.embeddings)
    encoder.position_encodings.encodings = _signal(model.source_positions, length)
    decoder.embeddings.weight = _array(model.target_embedding.embeddings)
    decoder.position_encodings.encodings = _signal(model.target_positions, length)
    decoder.start_from_zero_embedding = True  # and not from a token
    decoder.projection.weight = _array(model.softmax_embedding.embeddings)
    decoder.projection.bias = np.zeros(model.vocab_size, np.float32)
    decoder.projection.bias[PAD] = NEVER
    for to, layer in zip(encoder.layer, model.encoder.layers, strict=True):
        _self_attention(to.self_attention, layer.self_attention, layer.self_attention_residual)
        _feed_forward(to.ffn, layer.feed_forward, layer.feed_forward_residual)
    for to, layer in zip(decoder.layer, model.decoder.layers, strict=True):
        _self_attention(to.self_attention, layer.self_attention, layer.self_attention_residual)
        _encoder_attention(to.attention, layer.encoder_attention, layer.encoder_attention_residual)
        _feed_forward(to.ffn, layer.feed_forward, layer.feed_forward_residual)
    if h.pre_norm:
        _norm(encoder.layer_norm, model.encoder.final_norm)
        _norm(decoder.layer_norm, model.decoder.final_norm)
    return spec


def _self_attention(to: Any, attention: MultiHeadAttention, residual: Any) -> None:
    _linear(to.linear[0], attention.query_key_value_kernel)
    _linear(to.linear[1], attention.output_kernel)
    _norm(to.layer_norm, residual.norm)


def _encoder_attention(to: Any, attention: MultiHeadAttention, residual: Any) -> None:
    _linear(to.linear[0], attention.query_kernel)
    _linear(to.linear[1], attention.key_value_kernel)
    _linear(to.linear[2], attention.output_kernel)
    _norm(to.layer_norm, residual.norm)


def _feed_forward(to: Any, feed_forward: FeedForward, residual: Any) -> None:
    _linear(to.linear_0, feed_forward.kernel_1, feed_forward.bias_1)
    _linear(to.linear_1, feed_forward.kernel_2, feed_forward.bias_2)
    _norm(to.layer_norm, residual.norm)


def _linear(to: Any, kernel: Any, bias: Any = None) -> None:
    """Our kernels are [in, out], CTranslate2's [out, in]."""
    to.weight = np.ascontiguousarray(_array(kernel).T)
    if bias is not None:
        to.bias = _array(bias)


def _norm(to: Any, norm: Any) -> None:
    to.gamma, to.beta = _array(norm.gamma), _array(norm.beta)


def _signal(positions: Positions, length: int) -> np.ndarray:
    """[length, hidden]."""
    return np.asarray(positions.signal(np.arange(length)), np.float32)


def _array(variable: Any) -> np.ndarray:
    return np.asarray(variable, np.float32)
