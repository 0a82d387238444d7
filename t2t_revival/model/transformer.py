"""Figure 1: the Transformer."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_revival.hparams import HParams
from t2t_revival.model.attention import Cache, own_bias, padding_bias, recorded_weights
from t2t_revival.model.building import build_children
from t2t_revival.model.deterministic_attention import DeterministicAttention, Words
from t2t_revival.model.embedding import Positions, TokenEmbedding
from t2t_revival.model.regularization import Dropout
from t2t_revival.model.stacks import Decoder, Encoder


class DecoderState(NamedTuple):
    """What decoding remembers between positions. The first dimension is `batch`, but for the kernel's.

    Attributes:
        self_caches: of each layer, K and V of all beams at all positions so far,
            [batch, heads, memory, key or value].
        self_bias: hides from each hypothesis what it does not descend from, and what has left its
            neighbourhood where attention is restricted; float [batch, beams, memory]. The first places of
            memory may be dropped, with those of the caches, once they are hidden from all.
            Who puts one hypothesis in another's place puts its bias there, and moves nothing else. The
            number of beams may change from position to position.
        encoder_caches: of each layer, K and V of the encoder's output, [batch, heads, source, key or value].
        encoder_bias: hides the source's padding, [batch, 1, 1, source].
        softmax_kernel: the matrix before the softmax, [hidden, vocab]: turned once, not at each position.
        words: of the source, with deterministic attention; else empty.
        said: how many of them each hypothesis has come to, int32 [batch, beams], with deterministic
            attention; else empty. It goes where `self_bias` goes.
    """

    self_caches: list[Cache]
    self_bias: Any
    encoder_caches: list[Cache]
    encoder_bias: Any
    softmax_kernel: Any
    words: Words | tuple[()] = ()
    said: Any = ()


class AttentionWeights(NamedTuple):
    """What positions attend to: float32 [batch, layers, heads, query, memory]; over memory the sum is 1.

    Attributes:
        encoder: source positions over source positions.
        decoder: target positions over the targets before them: memory 0 is the start, memory m target m - 1.
        encoder_decoder: target positions over source positions.
    """

    encoder: Any
    decoder: Any
    encoder_decoder: Any


@keras.saving.register_keras_serializable("t2t_revival")
class Transformer(keras.Model):
    """The encoder-decoder of section 3. All weights exist once it is constructed.

    Args:
        hparams: the model's sizes; see `HParams`.
        vocab_size: number of tokens of the vocabulary that source and target share.

    Example:
        model = Transformer(registry.hparams("base"), vocab_size=37000)
        logits = model({"inputs": source_ids, "targets": target_ids})    # [batch, target, vocab]

    Reference: Vaswani et al., 2017, "Attention Is All You Need", figure 1; T2T's `models/transformer.py`.
    """

    def __init__(self, hparams: HParams, vocab_size: int, name: str = "transformer") -> None:
        super().__init__(name=name)
        self.hparams = hparams
        self.vocab_size = vocab_size
        hidden_size = hparams.hidden_size
        self.target_embedding = TokenEmbedding(vocab_size, hidden_size, name="target_embedding")
        if hparams.shared_embedding_and_softmax_weights:
            self.source_embedding = self.softmax_embedding = self.target_embedding
        else:
            self.source_embedding = TokenEmbedding(vocab_size, hidden_size, name="source_embedding")
            self.softmax_embedding = TokenEmbedding(vocab_size, hidden_size, name="softmax_embedding")
        self.source_positions = Positions(
            hparams, hparams.use_target_space_embedding, name="source_positions"
        )
        self.target_positions = Positions(hparams, name="target_positions")
        self.source_dropout = Dropout(hparams.layer_prepostprocess_dropout, name="source_dropout")
        self.target_dropout = Dropout(hparams.layer_prepostprocess_dropout, name="target_dropout")
        self.deterministic_attention = (
            DeterministicAttention(hparams, vocab_size, name="deterministic_attention")
            if hparams.deterministic_attention
            else None
        )
        self.encoder = Encoder(hparams, name="encoder")
        self.decoder = Decoder(hparams, name="decoder")
        self.build()

    def build(self, input_shape: Any = None) -> None:
        build_children(self)
        self.built = True

    def call(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Scores of each next target token, given the target tokens before it.

        Args:
            inputs: "inputs", source ids [batch, source], and "targets", target ids [batch, target]; both
                end with EOS and are padded with 0.
            training: whether dropout is active.

        Returns:
            Logits, [batch, target, vocab]; position t has seen the targets before t.
        """
        return self.softmax_embedding.logits(self.hidden(inputs, training))

    def hidden(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """The decoder's output, [batch, target, hidden], before `call` makes logits of it."""
        encoded, bias = self.encode(inputs["inputs"], training)
        words = self._words(inputs["inputs"], encoded)
        return self.decode(inputs["targets"], encoded, bias, training, words)

    def encode(self, source: Any, training: bool = False) -> tuple[Any, Any]:
        """Source ids [batch, source] -> encoded [batch, source, hidden], bias [batch, 1, 1, source]."""
        bias = padding_bias(source)
        x = self.source_positions(self.source_embedding(source))
        x = self.source_dropout(x, training=training)
        return self.encoder(x, bias, training=training), bias

    def decode(
        self,
        targets: Any,
        encoded: Any,
        encoder_bias: Any,
        training: bool = False,
        words: Words | tuple[()] = (),
    ) -> Any:
        """Teacher-forced decoding.

        Args:
            targets: ids [batch, target], not shifted.
            encoded: [batch, source, hidden].
            encoder_bias: [batch, 1, 1, source].
            training: whether dropout is active.
            words: of the source, where there is deterministic attention.

        Returns:
            [batch, target, hidden].
        """
        shifted = ops.pad(targets[:, :-1], [[0, 0], [1, 0]])  # the first position sees padding, which is 0
        x = self.target_positions(self.target_embedding(shifted))
        if self.deterministic_attention:
            said = ops.cumsum(self.deterministic_attention.stand_for(shifted), axis=1)  # [batch, target]
            x = x + self.deterministic_attention(said, words)
        x = self.target_dropout(x, training=training)
        return self.decoder(x, encoded, encoder_bias, training=training)

    def attention_weights(self, inputs: dict[str, Any]) -> AttentionWeights:
        """The weights of all attentions of `call`, which takes the same `inputs`; not inside of a graph."""
        with recorded_weights() as recorded:
            self.hidden(inputs)
        encoder_layers = len(self.encoder.layers)
        of_decoder = recorded[encoder_layers:]  # of each layer, itself first
        stacks = recorded[:encoder_layers], of_decoder[0::2], of_decoder[1::2]
        return AttentionWeights(*(ops.cast(ops.stack(layers, axis=1), "float32") for layers in stacks))

    def start_decoding(self, source: Any, beams: int = 1) -> DecoderState:
        """Encodes `source`, ids [batch, source], and returns the state before the first position."""
        encoded, bias = self.encode(source)
        h = self.hparams
        batch = ops.shape(source)[0]
        key, value = (
            ops.zeros((batch, h.num_heads, 0, channels // h.num_heads), dtype=self.compute_dtype)
            for channels in (h.key_channels, h.value_channels)
        )
        return DecoderState(
            self_caches=[(key, value) for _ in self.decoder.layers],
            self_bias=ops.zeros((batch, beams, 0)),
            encoder_caches=[
                layer.encoder_attention.key_value_heads(encoded) for layer in self.decoder.layers
            ],
            encoder_bias=bias,
            softmax_kernel=self.softmax_embedding.kernel(),
            words=self._words(source, encoded),
            said=ops.zeros((batch, beams), "int32") if self.deterministic_attention else (),
        )

    def decode_step(self, last: Any, position: Any, state: DecoderState) -> tuple[Any, DecoderState]:
        """Scores of the token at `position`.

        Args:
            last: ids [batch, beams] of the position before; 0 where `position` is 0.
            position: int scalar, counted from 0.
            state: from `start_decoding` or from the step before.

        Returns:
            Logits, [batch, beams, vocab], and the new state.
        """
        batch, beams = ops.shape(last)
        x = self.target_embedding(ops.reshape(last, (-1,)))  # [batch * beams, hidden]
        x = x + ops.cast(self.target_positions.signal(ops.reshape(position, (1,))), x.dtype)
        if self.deterministic_attention:
            said = state.said + self.deterministic_attention.stand_for(last)
            vectors = self.deterministic_attention(said, state.words)  # [batch, beams, hidden]
            x = x + ops.reshape(vectors, (-1, self.hparams.hidden_size))
            state = state._replace(said=said)
        own = ops.broadcast_to(own_bias(beams), (batch, beams, beams))
        bias = ops.concatenate([state.self_bias, own], axis=2)  # [batch, beams, memory]
        if self.decoder.neighbourhood:
            bias = self.decoder.neighbourhood.hide_left(bias)
        x, self_caches = self.decoder.step(
            x, beams, state.self_caches, bias[:, None], state.encoder_caches, state.encoder_bias
        )
        logits = ops.matmul(x, state.softmax_kernel)  # [batch * beams, vocab]
        logits = ops.reshape(logits, (-1, beams, logits.shape[-1]))
        return logits, state._replace(self_caches=self_caches, self_bias=bias)

    def _words(self, source: Any, encoded: Any) -> Words | tuple[()]:
        if self.deterministic_attention is None:
            return ()
        return self.deterministic_attention.words(source, encoded)

    def get_config(self) -> dict[str, Any]:
        return {"hparams": dataclasses.asdict(self.hparams), "vocab_size": self.vocab_size, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Transformer:
        return cls(HParams(**config["hparams"]), config["vocab_size"], config["name"])
