"""TensorFlow as an engine: the graphs of `SearchGraph`, compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from t2t_revival.decoding.alignment_heads import AlignmentHeads, all_heads
from t2t_revival.decoding.capabilities import TENSORFLOW
from t2t_revival.decoding.engine import Annotations, Engine, EngineConfig, Inputs
from t2t_revival.decoding.options import FLOAT32, DecodeHParams
from t2t_revival.decoding.search.beams import Results
from t2t_revival.decoding.search.search_graph import SearchGraph
from t2t_revival.decoding.search.tf_workarounds import check_result
from t2t_revival.model import Transformer
from t2t_revival.utils.keras_config import check_usable

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder

IDS = tf.TensorSpec([None, None], tf.int32)


class TensorFlowEngine(Engine):
    """Decodes with TensorFlow; a graph is compiled where it is first needed.

    Args:
        model: its weights are read at each call, unless the config says that they are constant.
        vocabulary: of the outputs.
        options: how to decode.
        config: of the engine.

    Raises:
        T2TError: as `SearchGraph`.
    """

    place = TENSORFLOW
    out_of_memory = tf.errors.ResourceExhaustedError

    def __init__(
        self, model: Transformer, vocabulary: TextEncoder, options: DecodeHParams, config: EngineConfig
    ) -> None:
        self._model, self._options = model, options
        constant = config.constant_weights and config.precision == FLOAT32
        self.graph = SearchGraph(model, vocabulary, options, constant_weights=constant)
        self.description = f"tensorflow, {model.dtype_policy.name}"
        self._compiled: dict[Any, Any] = {}

    def search(self, inputs: Inputs) -> tuple[Any, Any]:
        is_greedy = inputs.settings.beam_size == 1
        inputs = inputs._replace(ids=tf.cast(inputs.ids, tf.int32))
        inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
        specs = tf.nest.map_structure(lambda x: tf.TensorSpec([None] * x.shape.rank, x.dtype), inputs)
        search = self._search_greedily if is_greedy else self.graph.search
        key = is_greedy, *inputs.settings.score_terms, *inputs.settings.penalties, *tf.nest.flatten(specs)
        return check_result(self._compile(key, search, specs)(inputs))

    def _search_greedily(self, inputs: Inputs) -> Results:
        settings = inputs.settings._replace(beam_size=1)  # which is known when the graph is made
        return self.graph.search(inputs._replace(settings=settings))

    @property
    def spelling(self) -> Any:
        return self.graph.spelling

    def score(self, source_ids: Any, target_ids: Any) -> Any:
        return self._compile("score", self.graph.score, IDS, IDS)(source_ids, target_ids)

    def annotate(
        self, source_ids: Any, target_ids: Any, alternatives: int, heads: AlignmentHeads | None
    ) -> Annotations:
        annotate = partial(self.graph.annotate, alternatives=alternatives, heads=heads)
        annotated = self._compile((alternatives, heads), annotate, IDS, IDS)(source_ids, target_ids)
        return Annotations(*(x.numpy() for x in annotated))

    def attend(self, source_ids: Any, target_ids: Any) -> Any:
        def attend(source_ids: Any, target_ids: Any) -> Any:  # which leaves the softmax out of the graph
            return self.graph.annotate(source_ids, target_ids, 0, all_heads(self.model.hparams)).attention

        return self._compile("attend", attend, IDS, IDS)(source_ids, target_ids).numpy()

    def _compile(self, key: Any, function: Callable[..., Any], *specs: Any) -> Any:
        """Returns a compiled function, one for each key, also where threads ask at the same time."""
        check_usable()
        if key not in self._compiled:
            self._compiled.setdefault(key, tf.function(function, input_signature=specs, autograph=False))
        return self._compiled[key]
