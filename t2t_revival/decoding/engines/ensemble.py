"""`Ensemble`: several models that are decoded as one (Sutskever et al., 2014, section 3.6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any

from keras import ops

from t2t_revival.decoding.capabilities import ENSEMBLE, check_held
from t2t_revival.decoding.options import LOGARITHMS, MEANS, PROBABILITIES
from t2t_revival.errors import T2TError
from t2t_revival.model import DecoderState, Transformer
from t2t_revival.utils.texts import items_of

OF_SELF_BIAS = ("hparams.attention_window", "hparams.decoder_self_attention")  # which models share
SAME = ("vocab_size", "target_vocab_size", "compute_dtype", *OF_SELF_BIAS)


class Ensemble:
    """The mean of several models' probabilities of each next token.

    It has the attributes and methods of a `Transformer` that search and scoring use. The `DecoderState` holds
    the caches of all layers of all models, one model after the other, and a tuple of their softmax kernels.

    Args:
        models: of the same vocabularies; their sizes may differ.
        mean: of `PROBABILITIES`, or of their `LOGARITHMS`, which are then those of no distribution but are
            made one.

    Raises:
        T2TError: there are no models, or others than Transformers, or `mean` is unknown; the models have
            different vocabularies, attention windows or kinds of decoder self-attention; or as `check_held`.

    Example:
        translator = Translator(Ensemble([one.model, other.model]), one.vocabulary)
    """

    def __init__(self, models: Sequence[Transformer], mean: str = PROBABILITIES) -> None:
        if mean not in MEANS:
            raise T2TError(f"mean={mean!r} must be {' or '.join(MEANS)}")
        models = items_of(models, "models")
        if not models or not all(isinstance(model, Transformer) for model in models):
            raise T2TError("an ensemble is of models, as Translator.model is one: give at least one")
        first, self._mean = models[0], mean
        for model in models:
            check_held(model.hparams, ENSEMBLE)
            for name in SAME:
                if attrgetter(name)(model) != attrgetter(name)(first):
                    raise T2TError(
                        f"models of an ensemble must have the same {name.removeprefix('hparams.')}"
                    )
        self.models = models
        self.hparams, self.vocab_size = first.hparams, first.vocab_size
        self.target_vocab_size = first.target_vocab_size
        self.dtype_policy, self.compute_dtype = first.dtype_policy, first.compute_dtype
        bounds = accumulate((len(model.decoder.layers) for model in models), initial=0)
        self._layers = [slice(*pair) for pair in pairwise(bounds)]  # of each model, among all

    @property
    def weights(self) -> list[Any]:
        """The weights of all models."""
        return [weight for model in self.models for weight in model.weights]

    def count_params(self) -> int:
        """Returns the number of parameters of all models."""
        return sum(model.count_params() for model in self.models)

    def start_decoding(self, source: Any, beams: int = 1, positions: int = 0) -> DecoderState:
        """Implements `Transformer.start_decoding`."""
        states = [model.start_decoding(source, beams, positions) for model in self.models]
        return states[0]._replace(
            self_caches=[cache for state in states for cache in state.self_caches],
            encoder_caches=[cache for state in states for cache in state.encoder_caches],
            softmax_kernel=tuple(state.softmax_kernel for state in states),
        )

    def softmax_kernel(self, ids: Any = None) -> tuple[Any, ...]:
        """Returns the matrices of all models; see `Transformer.softmax_kernel`."""
        return tuple(model.softmax_kernel(ids) for model in self.models)

    def decode_step(self, last: Any, position: Any, state: DecoderState) -> tuple[Any, DecoderState]:
        """Implements `Transformer.decode_step`; the logits are log-probabilities, float32."""
        log_probs, self_caches, self_bias = [], [], state.self_bias
        for model, layers, kernel in zip(self.models, self._layers, state.softmax_kernel, strict=True):
            own = state._replace(
                self_caches=state.self_caches[layers],
                encoder_caches=state.encoder_caches[layers],
                softmax_kernel=kernel,
            )
            logits, own = model.decode_step(last, position, own)
            log_probs.append(ops.log_softmax(ops.cast(logits, "float32")))  # [batch, beams, vocab]
            self_caches += own.self_caches
            self_bias = own.self_bias  # which is the same for all
        return self._mean_of(log_probs), state._replace(self_caches=self_caches, self_bias=self_bias)

    def __call__(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Implements `Transformer.call`; the logits are log-probabilities, float32."""
        logits = [model(inputs, training=training) for model in self.models]
        return self._mean_of([ops.log_softmax(ops.cast(one, "float32")) for one in logits])

    def _mean_of(self, log_probs: list[Any]) -> Any:
        if self._mean == LOGARITHMS:
            return ops.log_softmax(sum(log_probs) / len(log_probs))
        return ops.logsumexp(ops.stack(log_probs), axis=0) - math.log(len(log_probs))
