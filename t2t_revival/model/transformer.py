"""Figure 1: the Transformer."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import keras
from keras import ops

from t2t_revival.hparams import HParams
from t2t_revival.model.attention import MASKED, padding_bias
from t2t_revival.model.dropout import Dropout
from t2t_revival.model.embedding import PositionalEncoding, TokenEmbedding
from t2t_revival.model.extensions.deterministic_attention import DeterministicAttention
from t2t_revival.model.outputs import AttentionWeights, DecoderState
from t2t_revival.model.products import matmul
from t2t_revival.model.stacks import Decoder, Encoder
from t2t_revival.utils.keras_hooks import build_sublayers


@keras.saving.register_keras_serializable("t2t_revival")
class Transformer(keras.Model):
    """The encoder-decoder of section 3. All weights exist once it is constructed.

    Args:
        hparams: the model's sizes; see `HParams`.
        vocab_size: number of tokens of the vocabulary that source and target share; of the source's where
            they have two.
        target_vocab_size: number of tokens of the target's own vocabulary. `None` has the shared one.
        name: the model's name, with which the names of its weights begin.
        **kwargs: `dtype`, a Keras dtype policy such as "mixed_bfloat16", and `trainable`.

    Example:
        model = Transformer(registry.hparams("base"), vocab_size=37000)
        logits = model({"inputs": source_ids, "targets": target_ids})    # [batch, target, vocab]

    Reference: Vaswani et al., 2017, "Attention Is All You Need", figure 1; T2T's `models/transformer.py`.
    """

    def __init__(
        self,
        hparams: HParams,
        vocab_size: int,
        name: str = "transformer",
        target_vocab_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.hparams = hparams
        self.vocab_size = vocab_size
        self.target_vocab_size = target_vocab_size or vocab_size
        h, dtype = hparams, self.dtype_policy
        embedding = partial(TokenEmbedding, hidden_size=h.hidden_size, dtype=dtype)
        positions = partial(PositionalEncoding, h.hidden_size, h.pos, h.max_length, dtype=dtype)
        dropout = partial(Dropout, h.layer_prepostprocess_dropout, dtype=dtype)
        sizes = {"num_heads": h.num_heads, "hidden_size": h.hidden_size, "filter_size": h.filter_size}
        heads = {"key_channels": h.key_channels, "value_channels": h.value_channels}
        rates = {"attention_dropout": h.attention_dropout, "relu_dropout": h.relu_dropout}
        norms = {"pre_norm": h.pre_norm, "norm_epsilon": h.norm_epsilon}
        layer: dict[str, Any] = {**sizes, **heads, **rates, **norms, "attention_window": h.attention_window}
        layer |= {"dropout": h.layer_prepostprocess_dropout, "dtype": dtype}
        self.target_embedding = embedding(self.target_vocab_size, name="target_embedding")
        self.source_embedding = self.softmax_embedding = self.target_embedding
        if target_vocab_size or not h.shared_embedding_and_softmax_weights:
            self.source_embedding = embedding(vocab_size, name="source_embedding")
        if not h.shared_embedding_and_softmax_weights:
            self.softmax_embedding = embedding(self.target_vocab_size, name="softmax_embedding")
        self.source_positions = positions(target_space=h.use_target_space_embedding, name="source_positions")
        self.target_positions = positions(name="target_positions")
        self.source_dropout = dropout(name="source_dropout")
        self.target_dropout = dropout(name="target_dropout")
        self.deterministic_attention: DeterministicAttention | None = None
        if h.deterministic_attention:
            self.deterministic_attention = DeterministicAttention(
                vocab_size, h.hidden_size, dtype=dtype, name="deterministic_attention"
            )
        self.encoder = Encoder(h.encoder_layers, **layer, name="encoder")
        layer["decoder_self_attention"] = h.decoder_self_attention
        self.decoder = Decoder(h.decoder_layers, **layer, name="decoder")
        self.build()

    def build(self, input_shape: Any = None) -> None:
        build_sublayers(self)

    def call(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Returns scores of each next target token, given the target tokens before it.

        Args:
            inputs: "inputs", source ids [batch, source], and "targets", target ids [batch, target]; both
                end with EOS and are padded with 0.
            training: whether dropout is active.

        Returns:
            Logits, [batch, target, vocab]; position t has seen the targets before t.
        """
        return self.softmax_embedding(self.hidden(inputs, training), reverse=True)

    def compute_output_spec(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Returns shape and type of the logits; see `SequenceLayer.compute_output_spec`."""
        return keras.KerasTensor((*inputs["targets"].shape, self.target_vocab_size), dtype=self.compute_dtype)

    def hidden(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Returns the decoder's output, [batch, target, hidden], of which `call` makes logits."""
        encoded = self.encode(inputs["inputs"], training)
        return self.decode(inputs["targets"], inputs["inputs"], encoded, training)

    def encode(self, source: Any, training: bool = False, **how: Any) -> Any:
        """Encodes ids [batch, source] -> [batch, source, hidden]; results and `how` as `Encoder.call`."""
        x = self.source_positions(self.source_embedding(source))
        x = self.source_dropout(x, training=training)
        return self.encoder(x, mask=ops.not_equal(source, 0), training=training, **how)

    def decode(self, targets: Any, source: Any, encoded: Any, training: bool = False, **how: Any) -> Any:
        """Decodes with teacher forcing; results and `how` as `Decoder.call`.

        `targets`, not shifted, and `source` are ids [batch, target] and [batch, source]; `encoded` is the
        source as `encode` returns it.
        """
        shifted = ops.pad(targets[:, :-1], [[0, 0], [1, 0]])  # the first position sees padding, which is 0
        x = self.target_positions(self.target_embedding(shifted))
        if self.deterministic_attention:
            word_tokens = self.deterministic_attention.stand_for(shifted)  # [batch, target]
            words = self.deterministic_attention.words(source, encoded)
            x = x + self.deterministic_attention(ops.cumsum(word_tokens, axis=1), words)
        x = self.target_dropout(x, training=training)
        return self.decoder(x, encoded, encoded_mask=ops.not_equal(source, 0), training=training, **how)

    def attention_weights(self, inputs: dict[str, Any]) -> AttentionWeights:
        """Returns the weights of all attentions of `call`, which has the same `inputs`."""
        source, how = inputs["inputs"], {"return_attention_scores": True}
        encoded, encoder_weights = self.encode(source, **how)
        _, decoder_weights = self.decode(inputs["targets"], source, encoded, **how)
        all_weights = (encoder_weights, *decoder_weights)
        return AttentionWeights(*(ops.cast(weights, "float32") for weights in all_weights))

    def start_decoding(self, source: Any, beams: int = 1, positions: int = 0) -> DecoderState:
        """Encodes `source`, ids [batch, source], and returns the state before the first position.

        With `positions`, its shapes are fixed: it has room for as many, of `beams` hypotheses each.
        """
        encoded = self.encode(source)
        batch = ops.shape(source)[0]
        attention = self.deterministic_attention
        if positions:
            self_bias = ops.full((batch, beams, positions * beams), MASKED)
        else:
            self_bias = ops.zeros((batch, beams, 0))
        return DecoderState(
            self_caches=[
                layer.self_attention.empty_cache(batch, beams, positions) for layer in self.decoder.layers
            ],
            self_bias=self_bias,
            encoder_caches=[
                layer.encoder_attention.key_value_heads(encoded) for layer in self.decoder.layers
            ],
            encoder_bias=padding_bias(ops.not_equal(source, 0)),
            softmax_kernel=self.softmax_kernel(),
            words=attention.words(source, encoded) if attention else (),
            words_emitted=ops.zeros((batch, beams), "int32") if attention else (),
        )

    def softmax_kernel(self, ids: Any = None) -> Any:
        """Returns the matrix before the softmax; see `TokenEmbedding.kernel`."""
        return self.softmax_embedding.kernel(ids)

    def decode_step(self, last: Any, position: Any, state: DecoderState) -> tuple[Any, DecoderState]:
        """Returns scores of the token at `position`.

        Args:
            last: ids [batch, beams] of the position before; 0 where `position` is 0.
            position: int scalar, counted from 0.
            state: from `start_decoding` or from the step before.

        Returns:
            Logits, [batch, beams, vocab], and the new state.
        """
        batch, beams = ops.shape(last)
        x = self.target_embedding(ops.reshape(last, (-1,)))  # [batch * beams, hidden]
        x = self.target_positions(x, ops.reshape(position, (1,)))
        if self.deterministic_attention:
            words_emitted = state.words_emitted + self.deterministic_attention.stand_for(last)
            vectors = self.deterministic_attention(words_emitted, state.words)  # [batch, beams, hidden]
            x = x + ops.reshape(vectors, (-1, self.hparams.hidden_size))
            state = state._replace(words_emitted=words_emitted)
        self_attention = self.decoder.layers[0].self_attention
        self_bias = self_attention.next_bias(state.self_bias, batch, beams, state.self_caches[0])
        state = state._replace(self_bias=self_bias)
        # Keras refuses inputs that are neither tensors nor plain values, as a `Matrix`.
        without_kernel = state._replace(softmax_kernel=())
        x, self_caches = self.decoder(x, state=without_kernel, beams=beams)
        logits = matmul(x, state.softmax_kernel)  # [batch * beams, vocab]
        logits = ops.reshape(logits, (-1, beams, ops.shape(logits)[1]))  # [batch, beams, vocab]
        return logits, state._replace(self_caches=self_caches)

    def get_config(self) -> dict[str, Any]:
        config = {"hparams": dataclasses.asdict(self.hparams), "vocab_size": self.vocab_size}
        if self.source_embedding is not self.target_embedding:
            config["target_vocab_size"] = self.target_vocab_size
        return {**super().get_config(), **config}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Transformer:
        return cls(**{**config, "hparams": HParams(**config["hparams"])})
