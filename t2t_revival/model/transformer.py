"""Figure 1: the Transformer."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_revival.hparams import HParams
from t2t_revival.model.attention import same_segment
from t2t_revival.model.dropout import Dropout
from t2t_revival.model.embedding import PositionalEncoding, TokenEmbedding, positions_in
from t2t_revival.model.extensions.deterministic_attention import DeterministicAttention
from t2t_revival.model.incremental import IncrementalDecoding
from t2t_revival.model.layer import LayerConfig
from t2t_revival.model.stacks import Decoder, Encoder
from t2t_revival.utils.keras_hooks import build_sublayers


class Segments(NamedTuple):
    """Segments of packed rows, see `data.packing`: int32 [batch, source] and [batch, target]."""

    source: Any
    target: Any

    @classmethod
    def of(cls, inputs: dict[str, Any]) -> Segments | None:
        """Returns those of a batch; `None` of one that is not packed."""
        if "inputs_segmentation" not in inputs:
            return None
        return cls(inputs["inputs_segmentation"], inputs["targets_segmentation"])


class AttentionWeights(NamedTuple):
    """Attention weights, float32 [batch, layers, heads, query, memory]; over memory the sum is 1.

    Attributes:
        encoder: source positions over source positions.
        decoder: target positions over the targets before them: memory 0 is the start, memory m target m - 1.
        encoder_decoder: target positions over source positions.
    """

    encoder: Any
    decoder: Any
    encoder_decoder: Any


@keras.saving.register_keras_serializable("t2t_revival")
class Transformer(IncrementalDecoding, keras.Model):
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
        shared, bias = h.shared_embedding_and_softmax_weights, h.softmax_bias
        target_size = self.target_vocab_size
        self.target_embedding = embedding(target_size, name="target_embedding", softmax_bias=shared and bias)
        self.source_embedding = self.softmax_embedding = self.target_embedding
        if target_vocab_size or not shared:
            self.source_embedding = embedding(vocab_size, name="source_embedding")
        if not shared:
            self.softmax_embedding = embedding(target_size, name="softmax_embedding", softmax_bias=bias)
        self.source_positions = positions(target_space=h.use_target_space_embedding, name="source_positions")
        self.target_positions = positions(name="target_positions")
        self.source_dropout = dropout(name="source_dropout")
        self.target_dropout = dropout(name="target_dropout")
        self.deterministic_attention: DeterministicAttention | None = None
        if h.deterministic_attention:
            self.deterministic_attention = DeterministicAttention(
                vocab_size, h.hidden_size, dtype=dtype, name="deterministic_attention"
            )
        names = {field.name for field in dataclasses.fields(LayerConfig)} - {"dropout"}
        config = LayerConfig(
            dropout=h.layer_prepostprocess_dropout, **{name: getattr(h, name) for name in names}
        )
        self.encoder = Encoder(h.encoder_layers, config, dtype=dtype, name="encoder")
        config = dataclasses.replace(config, filter_size=h.decoder_channels)
        self.decoder = Decoder(h.decoder_layers, config, dtype=dtype, name="decoder")
        self.build()

    def build(self, input_shape: Any = None) -> None:
        build_sublayers(self)

    def call(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Returns scores of each next target token, given the target tokens before it.

        Args:
            inputs: "inputs", source ids [batch, source], and "targets", target ids [batch, target]; both
                end with EOS and are padded with 0. Where several pairs share a row, also the `Segments`,
                "inputs_segmentation" and "targets_segmentation".
            training: whether dropout is active.

        Returns:
            Logits, [batch, target, vocab]; position t has seen the targets before t.
        """
        return self.softmax_embedding(self.hidden(inputs, training), reverse=True)

    def compute_output_spec(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Returns shape and type of the logits; see `ConfiguredLayer.compute_output_spec`."""
        return keras.KerasTensor((*inputs["targets"].shape, self.target_vocab_size), dtype=self.compute_dtype)

    def hidden(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Returns the decoder's output, [batch, target, hidden], of which `call` makes logits."""
        segments = Segments.of(inputs)
        encoded = self.encode(inputs["inputs"], training, segments=segments)
        return self.decode(inputs["targets"], inputs["inputs"], encoded, training, segments=segments)

    def encode(
        self,
        source: Any,
        training: bool = False,
        return_attention_scores: bool = False,
        segments: Segments | None = None,
    ) -> Any:
        """Encodes ids [batch, source] -> [batch, source, hidden]; see `Encoder.call`."""
        mask, positions = ops.not_equal(source, 0), None
        if segments:
            mask = same_segment(segments.source, segments.source)
            positions = positions_in(mask)
        x = self.source_positions(self.source_embedding(source), positions)
        x = self.source_dropout(x, training=training)
        scores = {"return_attention_scores": return_attention_scores}
        return self.encoder(x, mask=mask, training=training, **scores)

    def decode(
        self,
        targets: Any,
        source: Any,
        encoded: Any,
        training: bool = False,
        return_attention_scores: bool = False,
        segments: Segments | None = None,
    ) -> Any:
        """Decodes with teacher forcing, [batch, target, hidden]; see `Decoder.call`.

        `targets`, not shifted, and `source` are ids [batch, target] and [batch, source]; `encoded` is the
        source as `encode` returns it.
        """
        start = self.hparams.start_token  # padding, which is a vector of 0, or EOS
        shifted = ops.pad(targets[:, :-1], [[0, 0], [1, 0]], constant_values=start)
        encoded_mask, mask, positions = ops.not_equal(source, 0), None, None
        if segments:
            encoded_mask = same_segment(segments.target, segments.source)
            mask = same_segment(segments.target, segments.target)
            positions = positions_in(mask)
            shifted = ops.where(positions == 0, start, shifted)
        x = self.target_positions(self.target_embedding(shifted), positions)
        if self.deterministic_attention:
            word_tokens = self.deterministic_attention.stand_for(shifted)  # [batch, target]
            words = self.deterministic_attention.words(source, encoded)
            x = x + self.deterministic_attention(ops.cumsum(word_tokens, axis=1), words)
        x = self.target_dropout(x, training=training)
        masks = {"encoded_mask": encoded_mask, "mask": mask}
        scores = {"return_attention_scores": return_attention_scores}
        return self.decoder(x, encoded, training=training, **masks, **scores)

    def attention_weights(self, inputs: dict[str, Any]) -> AttentionWeights:
        """Returns the weights of all attentions of `call`, which has the same `inputs`."""
        source = inputs["inputs"]
        options: dict[str, Any] = {"return_attention_scores": True, "segments": Segments.of(inputs)}
        encoded, encoder = self.encode(source, **options)
        _, *decoder = self.decode(inputs["targets"], source, encoded, **options)
        return AttentionWeights(*(ops.cast(weights, "float32") for weights in (encoder, *decoder)))

    def get_config(self) -> dict[str, Any]:
        config = {"hparams": dataclasses.asdict(self.hparams), "vocab_size": self.vocab_size}
        if self.source_embedding is not self.target_embedding:
            config["target_vocab_size"] = self.target_vocab_size
        return {**super().get_config(), **config}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Transformer:
        return cls(**{**config, "hparams": HParams(**config["hparams"])})
