"""What an engine is: it finds, scores and annotates the outputs of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol

from t2t_revival.decoding.options import CTRANSLATE2, ENGINES, FLOAT32, MIXED_BFLOAT16, PRECISIONS, TENSORFLOW
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.checkpoints.directory import Checkpoint
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.annotation import Annotations
    from t2t_revival.decoding.inputs import Inputs
    from t2t_revival.decoding.options import DecodeHParams
    from t2t_revival.decoding.phrases import Spelling
    from t2t_revival.model import Transformer


@dataclass(frozen=True)
class EngineConfig:
    """The engine that decodes, and how it computes.

    Attributes:
        name: one of `ENGINES`; JAX decodes where that is TensorFlow and Keras's backend is JAX.
        precision: one of `PRECISIONS`; `MIXED_BFLOAT16` too, for an export. In int8, weights are those that
            the model has when the engine is opened.
        parallel: number of batches that are decoded at the same time.
        constant_weights: whether the model's weights will not change. Decoding is then faster, at the cost
            of a second copy of the softmax matrix.

    Raises:
        T2TError: there is no such engine or precision, or fewer than one batch at once. CTranslate2 has
            precisions of its own, and checks them.
    """

    name: str = TENSORFLOW
    precision: str = FLOAT32
    parallel: int = 1
    constant_weights: bool = True

    def __post_init__(self) -> None:
        if self.name != CTRANSLATE2 and self.precision not in (*PRECISIONS, MIXED_BFLOAT16):
            raise T2TError(f"precision={self.precision} must be {' or '.join(PRECISIONS)}")
        if not (isinstance(self.parallel, int) and self.parallel >= 1):
            raise T2TError(f"num_parallel_batches={self.parallel!r} must be an integer, at least 1")
        if self.name not in ENGINES:
            raise T2TError(f"engine={self.name} must be {' or '.join(ENGINES)}")


class Engine(Protocol):
    """An engine. What it cannot do it inherits from here: an error that says so.

    Attributes:
        description: the engine and the precision in which it computes, for people.
        out_of_memory: the error of a batch that is too large.
        unsupported: the message of what the engine cannot do, with a place for the name of that.
        holds_to_trees: whether outputs are constrained to trees.
    """

    description: str
    out_of_memory: ClassVar[type[Exception]] = MemoryError
    unsupported: ClassVar[str] = "this engine does not support {}"
    holds_to_trees: bool = False

    @classmethod
    def check(cls, options: DecodeHParams, config: EngineConfig) -> None:
        """Checks, before a model is loaded, that the engine decodes with some options.

        Raises:
            T2TError: it does not support one of them.
        """
        return

    @property
    def model(self) -> Transformer:
        """The model, if Keras computes it; else raises `T2TError`."""
        raise T2TError("the model is not on TensorFlow: use --engine=tensorflow")

    def load_weights(self, checkpoint: Checkpoint) -> None:
        """Loads the weights of another checkpoint of the same training.

        Raises:
            T2TError: the checkpoint is corrupt, or of another model; or the engine's weights are constant.
        """

    def search(self, inputs: Inputs) -> tuple[Any, Any]:
        """Decodes sentences; settings and arrays are those of Python and NumPy.

        Returns:
            Ids, int32 [batch, n, length], and scores, float32 [batch, n]; see `SearchGraph.search`.
        """

    @property
    def spelling(self) -> Spelling:
        """Of phrases in `Inputs.tables`."""
        self.refuse("constraints of outputs")

    def score(self, source_ids: Any, target_ids: Any) -> Any:
        """Returns log-probabilities of given outputs, float [batch]; see `SearchGraph.score`."""
        self.refuse("scores of given outputs")

    def annotate(self, source_ids: Any, target_ids: Any, heads: AlignmentHeads | None = None) -> Annotations:
        """Annotates given outputs; see `SearchGraph.annotate`."""
        self.refuse("details of outputs")

    def attend(self, source_ids: Any, target_ids: Any) -> Any:
        """Returns the mean attention of all heads of the last layer, float32 [batch, target, source]."""
        self.refuse("coverage_penalty")

    def refuse(self, what: str) -> NoReturn:
        """Raises the error that the engine cannot do something."""
        raise T2TError(self.unsupported.format(what))
