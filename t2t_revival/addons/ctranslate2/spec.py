"""The weights of a model as CTranslate2 names and shapes them; imports TensorFlow and CTranslate2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from ctranslate2.specs import common_spec, transformer_spec

from t2t_revival.data.vocabulary.sentencepiece import PAD
from t2t_revival.hparams.variants import FEED_FORWARDS, POSITIONS
from t2t_revival.model.extensions.positions import RelativeAttention
from t2t_revival.model.feed_forward import GatedFeedForward
from t2t_revival.model.norms import LayerNorm

if TYPE_CHECKING:
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.hparams import HParams
    from t2t_revival.model import MultiHeadAttention, Transformer
    from t2t_revival.model.embedding import PositionalEncoding
    from t2t_revival.model.stacks import DecoderLayer, EncoderLayer

NEG_INF = -1e4  # bias of PAD, so that it is never produced; within the range of float16


def make_spec(model: Transformer, positions: int) -> Any:
    """Returns a model's weights as CTranslate2's specification, float32, with `positions` encoded."""
    h = model.hparams
    network = FEED_FORWARDS[h.ffn_activation]
    kind = {
        "pre_norm": h.pre_norm,
        "rms_norm": h.norm_type == "rms",
        "activation": common_spec.Activation[network.activation.upper()],
        "ffn_glu": network.is_gated,
        "relative_position": h.pos == "relative",
        "rotary_dim": 0 if h.pos == "rotary" else None,  # 0: all channels of a head
        "head_dim": h.key_channels // h.num_heads,
    }
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(h.encoder_layers, h.num_heads, **kind),
        transformer_spec.TransformerDecoderSpec(h.decoder_layers, h.num_heads, **kind),
    )
    encoder, decoder = spec.encoder, spec.decoder
    encoder.embeddings[0].weight = _array(model.source_embedding.embeddings)
    decoder.embeddings.weight = _array(model.target_embedding.embeddings)
    if POSITIONS[h.pos].made_by:
        if h.use_target_space_embedding:  # as part of each embedding, which CTranslate2 multiplies
            target_space = _array(model.source_positions.target_space) / h.hidden_size**0.5
            encoder.embeddings[0].weight = encoder.embeddings[0].weight + target_space
    else:
        encoder.position_encodings.encodings = _encodings(model.source_positions, positions)
        decoder.position_encodings.encodings = _encodings(model.target_positions, positions)
    decoder.start_from_zero_embedding = not h.start_token
    decoder.projection.weight = _array(model.softmax_embedding.embeddings)
    decoder.projection.bias = np.zeros(model.target_vocab_size, np.float32)
    if h.softmax_bias:
        decoder.projection.bias += _array(model.softmax_embedding.softmax_bias)
    decoder.projection.bias[PAD] = NEG_INF
    for to, ours in ((encoder, model.encoder), (decoder, model.decoder)):
        for layer, our_layer in zip(to.layer, ours.layers, strict=True):
            _layer(layer, our_layer)
            if ours is model.decoder:
                attention = our_layer.encoder_attention
                kernels = [attention.query_kernel, attention.key_value_kernel, attention.output_kernel]
                _attention(layer.attention, attention, our_layer.encoder_attention_residual, *kernels)
        if h.pre_norm:
            _norm(to.layer_norm, ours.final_norm)
    return spec


def _layer(to: Any, layer: EncoderLayer | DecoderLayer) -> None:
    """Copies what layers of encoder and decoder have in common."""
    attention, feed_forward = layer.self_attention, layer.feed_forward
    kernels = [attention.query_key_value_kernel, attention.output_kernel]
    _attention(to.self_attention, attention, layer.self_attention_residual, *kernels)
    if isinstance(attention, RelativeAttention):
        to.self_attention.relative_position_keys = _array(attention.relative_keys)
        to.self_attention.relative_position_values = _array(attention.relative_values)
    if isinstance(feed_forward, GatedFeedForward):
        gate, linear = np.split(_array(feed_forward.kernel_1), 2, axis=1)
        _linear(to.ffn.linear_0, gate)
        _linear(to.ffn.linear_0_noact, linear)
        _linear(to.ffn.linear_1, feed_forward.kernel_2)
    else:
        _linear(to.ffn.linear_0, feed_forward.kernel_1, feed_forward.bias_1)
        _linear(to.ffn.linear_1, feed_forward.kernel_2, feed_forward.bias_2)
    _norm(to.ffn.layer_norm, layer.feed_forward_residual.norm)


def put_first(decoder: Any, heads: AlignmentHeads, hparams: HParams) -> None:
    """Makes heads those whose attention is returned, the first of their layer; outputs stay the same."""
    heads.check(hparams)
    chosen = [head - 1 for head in heads.heads]
    order = [*chosen, *(head for head in range(hparams.num_heads) if head not in chosen)]
    query, key_value, output = decoder.layer[heads.layer - 1].attention.linear
    for linear, axis in ((query, 0), (key_value, 0), (output, 1)):  # of weights [out, in]
        parts = 2 if linear is key_value else 1
        size = linear.weight.shape[axis] // (parts * hparams.num_heads)
        rows = np.arange(linear.weight.shape[axis]).reshape(parts, hparams.num_heads, size)[:, order].ravel()
        linear.weight = np.ascontiguousarray(np.take(linear.weight, rows, axis=axis))
        if axis == 0 and linear.has_bias():
            linear.bias = linear.bias[rows]
    decoder.alignment_layer = np.int16(heads.layer - 1)
    decoder.alignment_heads = np.int16(len(chosen))


def _attention(to: Any, attention: MultiHeadAttention, residual: Any, *kernels: Any) -> None:
    for linear, kernel in zip(to.linear, kernels, strict=True):
        _linear(linear, kernel, attention.biases.get(kernel.name))
    _norm(to.layer_norm, residual.norm)


def _linear(to: Any, kernel: Any, bias: Any = None) -> None:
    """Copies a linear layer; kernels are [in, out] here, [out, in] in CTranslate2."""
    to.weight = np.ascontiguousarray(_array(kernel).T)
    if bias is not None:
        to.bias = _array(bias)


def _norm(to: Any, norm: Any) -> None:
    to.gamma = _array(norm.gamma)
    if isinstance(norm, LayerNorm):
        to.beta = _array(norm.beta)


def _encodings(positions: PositionalEncoding, length: int) -> np.ndarray:
    """Returns the encodings of the first positions, [length, hidden]."""
    return np.asarray(positions.encode(np.arange(length)), np.float32)


def _array(variable: Any) -> np.ndarray:
    return np.asarray(variable, np.float32)
