"""Search, sampling and scoring by a Keras model on TensorFlow."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import tensorflow as tf

from t2t_revival.decoding.alignment_heads import all_heads
from t2t_revival.decoding.annotation import Annotator
from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.decoding.constraints import TreeConstraint
from t2t_revival.decoding.guards import Guards
from t2t_revival.decoding.int8 import MAX_FACTOR, Int8Weights, check_int8_products
from t2t_revival.decoding.lexical_search import LexicalSearch
from t2t_revival.decoding.options import FLOAT32, DecodeHParams
from t2t_revival.decoding.phrases import Spelling
from t2t_revival.decoding.sampling import Sampler
from t2t_revival.decoding.scoring import Scorer
from t2t_revival.errors import T2TError
from t2t_revival.model import Transformer

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder
    from t2t_revival.decoding.alignment_heads import AlignmentHeads


class TensorFlowEngine:
    """The engine of `Translator` that TensorFlow is.

    Args:
        model: its weights may change between calls, unless `constant_weights` or `int8`.
        vocabulary: of the outputs.
        options: how to decode.
        constant_weights: see `BeamSearch`.
        int8: whether products are computed in int8, with the weights that a model in float32 has now.
        alignment_heads: align words; `None` for no alignments.

    Attributes:
        constraint: of the outputs; `None` allows any.
        search: finds outputs; see `BeamSearch`.
        sampler: draws outputs; see `Sampler`.
        scorer: scores given outputs; see `Scorer`.
        annotate: annotates given outputs; see `Annotator`.
        attend: of the last layer's attention, for `CoveragePenalty`; `None` without it.
        out_of_memory: the error of a batch that is too large.

    Raises:
        T2TError: the options ask for trees, and the vocabulary has no tokens of trees; or for int8, and the
            model is not in float32, or TensorFlow has no int8 products.
    """

    out_of_memory = tf.errors.ResourceExhaustedError

    def __init__(
        self,
        model: Transformer,
        vocabulary: TextEncoder,
        options: DecodeHParams,
        constant_weights: bool,
        int8: bool,
        alignment_heads: AlignmentHeads | None = None,
    ) -> None:
        weights = None
        if int8:
            if model.compute_dtype != FLOAT32:
                raise T2TError(
                    f"int8 is for a model in float32, not {model.compute_dtype}: load it in float32"
                )
            check_int8_products()
            weights = Int8Weights(model, MAX_FACTOR).products
            constant_weights = False  # which would keep the softmax matrix in float32
        guards = Guards.of(options)
        temperature, top_k = options.sampling_temp, options.sampling_keep_top_k
        self.constraint = TreeConstraint(vocabulary.pieces) if options.constrained else None
        self.search = BeamSearch(
            model,
            constant_weights,
            self.constraint,
            options.early_stopping,
            weights,
            guards,
            vocabulary.banned,
        )
        settings = constant_weights, self.constraint, weights, guards, vocabulary.banned
        self.sampler = Sampler(model, temperature, top_k, *settings)
        self.scorer = Scorer(model, weights)
        self.attend = None
        if options.coverage_penalty:
            if model.hparams.decoder_self_attention != "attention":
                raise T2TError("coverage_penalty needs a decoder with self-attention: leave it out")
            self.attend = Annotator(model, heads=all_heads(model.hparams), weights=weights).attend
        self._model, self._options, self._weights = model, options, weights
        self._vocabulary = vocabulary
        self.annotate = self.annotator(alignment_heads)

    @cached_property
    def lexical_search(self) -> LexicalSearch:
        """Finds outputs that have given phrases."""
        return LexicalSearch(self.search.loop, Spelling(self._vocabulary), self._options.early_stopping)

    def annotator(self, heads: AlignmentHeads | None) -> Annotator:
        """Returns what annotates given outputs, with the attention of heads.

        Raises:
            T2TError: the model has not these heads.
        """
        if heads:
            heads.check(self._model.hparams)
        return Annotator(self._model, self._options.alternatives, heads, self._weights)
