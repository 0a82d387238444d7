"""Search by a Keras model on JAX, without TensorFlow."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from t2t_revival.data.buckets import fixed_width
from t2t_revival.data.vocabulary.text_encoder import PAD
from t2t_revival.decoding.capabilities import JAX, check_held
from t2t_revival.decoding.fixed_shape_search import Settings, search
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.utils.jax_program import JaxProgram

if TYPE_CHECKING:
    from t2t_revival.model import Transformer

FEW_ROWS = 8  # of a batch of few sentences, as of lines that are typed
UNSUPPORTED = "decoding on JAX does not support {}: set KERAS_BACKEND=tensorflow"
UNCONSTRAINED = (
    "decoding on JAX does not constrain outputs to trees: malformed ones are repaired, and F1 may be a "
    "little lower than with KERAS_BACKEND=tensorflow"
)


class JaxEngine:
    """The engine of `Translator` that JAX is: beam search and greedy decoding.

    Outputs are not constrained to trees, as TensorFlow's are: a parser's problem repairs malformed ones.

    Args:
        model: its weights may change between calls.
        options: how to decode.
        int8: whether products are to be computed in int8.
        banned: a token that no output has; PAD for none.

    Attributes:
        constraint, attend: `None`; see `TensorFlowEngine`.
        out_of_memory: see `TensorFlowEngine`.
        search: finds outputs; see `JaxSearch`.

    Raises:
        T2TError: JAX's search does not support one of the options.
    """

    constraint = attend = None
    out_of_memory = MemoryError

    def __init__(self, model: Transformer, options: DecodeHParams, int8: bool, banned: int = PAD) -> None:
        check_usable(options, int8)
        if options.constrained:
            warnings.warn(UNCONSTRAINED, stacklevel=2)
        self.search = JaxSearch(model, options.tokens_at_once, options.early_stopping, banned)

    @property
    def lexical_search(self) -> NoReturn:
        """Raises the error that outputs cannot be made to have given phrases."""
        raise T2TError(UNSUPPORTED.format("constraints of outputs"))

    def sampler(self, *_: Any) -> NoReturn:
        """Raises the error that outputs are not drawn."""
        raise T2TError(UNSUPPORTED.format("sampling_method=random"))

    def scorer(self, *_: Any) -> NoReturn:
        """Raises the error that given outputs are not scored."""
        raise T2TError(UNSUPPORTED.format("scores of given outputs"))

    def annotate(self, *_: Any) -> NoReturn:
        """Raises the error that there are no details."""
        raise T2TError(UNSUPPORTED.format("details of outputs"))


def check_usable(options: DecodeHParams, int8: bool) -> None:
    """Checks that JAX can decode with these options.

    Raises:
        T2TError: it does not support one of them.
    """
    for given, name in (
        (options.samples, "sampling_method=random"),
        (options.guards, next(iter(options.guards), "")),
        (options.coverage_penalty, "coverage_penalty"),
        (options.markup, "markup"),
        (options.details, options.details),
        (int8, "int8"),
    ):
        if given:
            raise T2TError(UNSUPPORTED.format(name))


class JaxSearch:
    """Finds the most probable outputs of a model as `BeamSearch` does, in programs of few shapes.

    Sources are padded to powers of two, and batches to as many rows as `batch_size` tokens hold, or to few:
    there are two programs for each width, and for each beam_size, n and extra_length.

    Args:
        model: the model, or an `Ensemble`.
        batch_size: input tokens that are decoded at once, padding included.
        early_stopping: see `BeamSearch`.
        banned: see `JaxEngine`.

    Attributes:
        program: the compiled search.

    Raises:
        T2TError: as `check_held`.
    """

    def __init__(
        self, model: Transformer, batch_size: int, early_stopping: bool = False, banned: int = PAD
    ) -> None:
        check_held(model.hparams, JAX)

        def run(
            source_ids: Any, alpha: Any, extra_length: int, beam_size: int, n: int
        ) -> tuple[Any, Any, Any]:
            settings = Settings(beam_size, n, early_stopping, alpha, extra_length, banned)
            return search(model, source_ids, settings, source_ids.shape[1] + extra_length)

        self.program = JaxProgram(model, run, num_arrays=2)
        self._batch_size = batch_size

    def __call__(
        self,
        source_ids: Any,
        beam_size: int = 4,
        alpha: float = 0.6,
        extra_length: int = 50,
        n: int = 1,
        prefixes: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Searches for the best outputs of each sentence; arguments and results are those of `BeamSearch`.

        Raises:
            T2TError: there are prefixes.
        """
        if prefixes is not None:
            raise T2TError(UNSUPPORTED.format("given beginnings of outputs"))
        sources = np.asarray(source_ids, np.int32)
        lengths = (sources != PAD).sum(axis=1)
        found = [(np.zeros((0, n, 0), np.int32), np.zeros((0, n), np.float32))]
        first = 0
        while first < len(sources):
            width = self._width(lengths[first:], sources.shape[1])
            most_rows = max(1, self._batch_size // width)
            part = sources[first : first + most_rows, :width]
            rows = min(FEW_ROWS, most_rows) if len(part) <= FEW_ROWS else most_rows
            padded = np.full((rows, width), PAD, np.int32)
            padded[: len(part), : part.shape[1]] = part
            settings = np.float32(alpha), extra_length, beam_size, n
            ids, scores, length = self.program(padded, *settings)
            found.append((ids[: len(part), :, :length], scores[: len(part)]))
            first += len(part)
        longest = max(ids.shape[2] for ids, _ in found)
        all_ids = [np.pad(ids, ((0, 0), (0, 0), (0, longest - ids.shape[2]))) for ids, _ in found]
        return np.concatenate(all_ids), np.concatenate([scores for _, scores in found])

    def _width(self, lengths: np.ndarray, widest: int) -> int:
        """Chooses the width of the next rows: as wide as `widest` asks for where that needs fewer rows."""
        width, widest = fixed_width(int(lengths.max())), fixed_width(widest)
        while width < widest and FEW_ROWS < len(lengths) <= self._batch_size // (2 * width):
            width *= 2
        return width
