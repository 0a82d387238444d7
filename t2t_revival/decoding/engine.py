"""Engines, which find, score and annotate the outputs of a model: their interface and their inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from t2t_revival.checkpoints.directory import Checkpoint, restore_weights
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.capabilities import Place
from t2t_revival.decoding.options import (
    CTRANSLATE2,
    ENGINES,
    FLOAT32,
    JAX,
    MIXED_BFLOAT16,
    PRECISIONS,
    TENSORFLOW,
)
from t2t_revival.errors import T2TError
from t2t_revival.utils import keras_config
from t2t_revival.utils.aligned import undrawn

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.options import DecodeHParams
    from t2t_revival.hparams import HParams
    from t2t_revival.model import Transformer

ALL = -1  # value of keep_top_k


class SearchSettings(NamedTuple):
    """Settings of a search.

    In a graph they are scalars, or [batch, 1] with a value for each sentence: both broadcast with
    [batch, beams].

    Attributes:
        beam_size: hypotheses kept per sentence, int32; 1 is greedy decoding.
        extra_length: maximum number of tokens that an output has more than its source, int32.
        n: outputs returned per sentence, at most `beam_size`; int32.
        score_terms: settings of the score's terms, by name in `TERMS`, float32; a term that is left out adds
            no op.
        penalties: settings of penalties of tokens, by name in `PENALTIES`, float32; likewise.
        spare: further outputs that are returned if the search has found them when it has the n best; int32.
    """

    beam_size: Any
    extra_length: Any
    n: Any
    score_terms: Mapping[str, Any]
    penalties: Mapping[str, Any]
    spare: Any = 0

    @property
    def width(self) -> Any:
        """The number of outputs returned, spare ones included."""
        return self.n + self.spare

    @classmethod
    def of(cls, options: DecodeHParams, n: int = 1, spare: int = 0) -> SearchSettings:
        """Returns the settings of a search for n outputs."""
        sizes = options.beam_size, options.extra_length, n
        return cls(*sizes, options.score_terms, options.penalties, spare)


def max_output_length(source: int, prefix: int, extra_length: int, options: DecodeHParams) -> int:
    """Returns the maximum number of tokens of an output, EOS counted, as `SearchGraph.bounds` has it.

    Args:
        source: tokens of the source, EOS counted.
        prefix: tokens of the output's beginning.
        extra_length: see `DecodeHParams`.
        options: their `max_length_ratio` and `max_length_factor` are limits too.
    """
    import numpy as np  # whose float32 rounds as that of graphs

    limits = [max(source, 1 + prefix) + extra_length]
    if options.max_length_ratio:
        limits.append(1 + math.ceil(np.float32(options.max_length_ratio) * np.float32(source - 1)))
    if options.max_length_factor:
        limits.append(math.ceil(np.float32(options.max_length_factor) * np.float32(source)))
    return max(min(limits), 1 + prefix)


class Draws(NamedTuple):
    """Random numbers and settings of sampling.

    The settings are scalars, or [batch, 1] with a value for each sentence.

    Attributes:
        uniforms: random numbers of [0, 1), float32 [batch, position, n].
        temperature: divides the logits; the nearer to 0, the more often the most probable token is drawn.
        keep_top_k: number of most probable tokens to draw from, int32; `ALL` draws from all.
    """

    uniforms: Any
    temperature: Any
    keep_top_k: Any


class Inputs(NamedTuple):
    """Arguments of a search.

    Attributes:
        ids: sources, int32 [batch, source]; each ends with EOS and is padded with 0. A row of padding only
            has no outputs.
        settings: of the search.
        prefixes: beginnings of the outputs, int32 [batch, longest], without EOS, padded with 0; () forces
            nothing. Scores count forced tokens like all others, and an output may also have `extra_length`
            tokens more than its prefix. Not for trees.
        draws: random numbers, if outputs are drawn and not searched for; else ().
        tables: `LexicalTables`, if outputs must or must not have phrases; else (). `beam_size` is then at
            least 2.
    """

    ids: Any
    settings: SearchSettings
    prefixes: Any = ()
    draws: Any = ()
    tables: Any = ()

    @property
    def has_prefixes(self) -> bool:
        """True if beginnings of outputs are forced."""
        return not isinstance(self.prefixes, tuple)


class Annotations(NamedTuple):
    """Details of the tokens of outputs.

    Attributes:
        log_probs: of each token, float32 [batch, target].
        alternatives: the most probable tokens at each position, int32 [batch, target, k].
        alternative_log_probs: theirs, float32 [batch, target, k].
        attention: mean weights of the alignment heads, float32 [batch, target, source]; a token's row is that
            of the position where heads that are `shifted` read it. Without heads, [batch, 0, 0].
    """

    log_probs: Any
    alternatives: Any
    alternative_log_probs: Any
    attention: Any


@dataclass(frozen=True)
class EngineConfig:
    """The engine that decodes, and how it computes.

    Attributes:
        name: one of `ENGINES`; JAX decodes where that is TensorFlow and Keras's backend is JAX.
        precision: one of `PRECISIONS`; `MIXED_BFLOAT16` too, for an export.
        parallel: number of batches that are decoded at the same time.
        constant_weights: whether the model's weights will not change. Decoding is then faster, at the cost
            of a second copy of the softmax matrix.
        longest_source: maximum number of tokens of the sources, for an engine that compiles a program of each
            shape: it makes one. With 0, lines decide.

    Raises:
        T2TError: there is no such engine or precision, or fewer than one batch at once. CTranslate2 has
            precisions of its own, and checks them.
    """

    name: str = TENSORFLOW
    precision: str = FLOAT32
    parallel: int = 1
    constant_weights: bool = True
    longest_source: int = 0

    def __post_init__(self) -> None:
        if self.name != CTRANSLATE2 and self.precision not in (*PRECISIONS, MIXED_BFLOAT16):
            raise T2TError(f"precision={self.precision} must be {' or '.join(PRECISIONS)}")
        if not (isinstance(self.parallel, int) and self.parallel >= 1):
            raise T2TError(f"num_parallel_batches={self.parallel!r} must be an integer, at least 1")
        if self.name not in ENGINES:
            raise T2TError(f"engine={self.name} must be {' or '.join(ENGINES)}")

    @property
    def engine(self) -> str:
        """The name of the engine: of Keras's backend, if that is JAX and decodes."""
        return JAX if self.name == TENSORFLOW and keras_config.backend() == JAX else self.name

    @property
    def place(self) -> Place:
        """The engine, as a place of what can be asked for."""
        return {
            TENSORFLOW: capabilities.TENSORFLOW,
            JAX: capabilities.JAX,
            CTRANSLATE2: capabilities.CTRANSLATE2,
        }[self.engine]


class Engine(Protocol):
    """An engine. What it does not support it inherits from here: an error that says so.

    Attributes:
        description: the engine and the precision in which it computes, for people.
        out_of_memory: the error of a batch that is too large.
        place: its row in the table of what engines support.
    """

    description: str
    out_of_memory: ClassVar[type[Exception]] = MemoryError
    place: ClassVar[Place]
    _model: Transformer | None = None  # if Keras computes it

    @property
    def model(self) -> Transformer:
        """The model, if Keras computes it; else raises `T2TError`."""
        if self._model is None:
            raise T2TError("the model is not on TensorFlow: use --engine=tensorflow")
        return self._model

    def load_weights(self, checkpoint: Checkpoint) -> None:
        """Loads the weights of another checkpoint of the same training.

        Raises:
            T2TError: the checkpoint is corrupt, or of another model.
        """
        restore_weights(self.model, checkpoint.path)

    def expect(self, batches: Iterable[Sequence[int]], settings: SearchSettings) -> None:
        """Prepares for searches of these batches, given by the lengths of their sources in tokens."""

    def search(self, inputs: Inputs) -> tuple[Any, Any]:
        """Decodes sentences; settings and arrays are those of Python and NumPy.

        Returns:
            Ids, int32 [batch, n + spare, length], and scores, float32 [batch, n + spare]; see
            `SearchGraph.search`.
        """

    @property
    def spelling(self) -> Any:
        """The spelling of phrases in `Inputs.tables`."""
        raise self.place.refusal("constraints")

    def score(self, source_ids: Any, target_ids: Any) -> Any:
        """Returns log-probabilities of given outputs, float [batch]; see `SearchGraph.score`."""
        raise self.place.refusal("scores")

    def annotate(
        self, source_ids: Any, target_ids: Any, alternatives: int, heads: AlignmentHeads | None
    ) -> Annotations:
        """Annotates given outputs; see `SearchGraph.annotate`."""
        raise self.place.refusal("annotations")

    def attend(self, source_ids: Any, target_ids: Any) -> Any:
        """Returns the mean attention of all heads of the last layer, float32 [batch, target, source]."""
        raise self.place.refusal("coverage_penalty")


def load_transformer(
    checkpoint: Path, hparams: HParams, vocabularies: Vocabularies, dtype: str = FLOAT32
) -> Transformer:
    """Loads the model of a checkpoint with Keras.

    Raises:
        T2TError: the checkpoint is corrupt, or of another model.
    """
    from t2t_revival.model import Transformer
    from t2t_revival.model.layer import weights_made_by

    with weights_made_by(undrawn):
        sizes = vocabularies.inputs.size, vocabularies.target_size
        model = Transformer(hparams, sizes[0], target_vocab_size=sizes[1], dtype=dtype)
    restore_weights(model, checkpoint)
    return model
