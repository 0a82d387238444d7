"""Search by a Keras model on JAX, without TensorFlow."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from threading import Thread, main_thread
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_revival.data.batching import fixed_width
from t2t_revival.data.vocabulary.text_encoder import PAD
from t2t_revival.data.workers import cores
from t2t_revival.decoding.capabilities import JAX, check_held
from t2t_revival.decoding.engine import Engine, EngineConfig, Inputs, SearchSettings
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.search.fixed_shape_search import search
from t2t_revival.utils.jax_program import JaxProgram

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder
    from t2t_revival.model import Transformer

LEAST_WIDTH = 32  # positions of a source: a narrower program would save little time
BUSY_CORES = 2  # that one compilation keeps busy
COMPILING = "programs to come"  # name of the thread that compiles them
FEW_ROWS = 8  # of a batch of few sentences, as of lines that are typed
UNCONSTRAINED = (
    "decoding on JAX does not constrain outputs to trees: malformed ones are repaired, and F1 may be a "
    "little lower than with KERAS_BACKEND=tensorflow"
)


class JaxEngine(Engine):
    """Decodes with JAX as `SearchGraph` does, in programs of few shapes: beam search and greedy decoding.

    Sources are padded to 32, 64, 128, ... positions, and batches to as many rows as a batch has at most whose
    longest source needs them, or to few rows: there are two programs for each width, and for each beam_size,
    extra_length, n and spare. Where the longest of all sources is known, there is one. With more than two
    cores, a thread compiles programs of batches to come while the first ones are decoded. Outputs are not
    constrained to trees, as TensorFlow's are: a parser's problem repairs malformed ones.

    Args:
        model: the model, or an `Ensemble`; its weights are read at each call.
        vocabulary: of the outputs.
        options: how to decode.
        config: of the engine.

    Attributes:
        program: the compiled search.

    Raises:
        T2TError: as `check_held`.
    """

    place = JAX

    def __init__(
        self, model: Transformer, vocabulary: TextEncoder, options: DecodeHParams, config: EngineConfig
    ) -> None:
        if options.constrained:
            warnings.warn(UNCONSTRAINED, stacklevel=2)
        check_held(model.hparams, JAX)
        self._model, self._batch_size, self._longest = model, options.tokens_at_once, config.longest_source
        self.description = f"jax, {model.dtype_policy.name}"

        def run(source_ids: Any, score_terms: dict[str, Any], *sizes: int) -> tuple[Any, Any, Any]:
            beam_size, extra_length, n, spare = sizes
            settings = SearchSettings(beam_size, extra_length, n, score_terms, {}, spare)
            return search(model, source_ids, settings, options, vocabulary.banned, vocabulary.first)

        self.program = JaxProgram(model, run, num_arrays=2)

    def expect(self, batches: Iterable[Sequence[int]], settings: SearchSettings) -> None:
        if cores() <= BUSY_CORES:
            return
        _, *later = dict.fromkeys(self._shape(len(batch), max(batch)) for batch in batches)
        if later:
            Thread(target=self._compile, args=(later, settings), name=COMPILING).start()

    def _compile(self, shapes: Sequence[tuple[int, int]], settings: SearchSettings) -> None:
        with suppress(Exception):  # the first batch of this shape tries again, and says what is wrong
            for shape in shapes:
                if main_thread().is_alive():  # else a command ends, and waits for this thread
                    self.program.compile(np.full(shape, PAD, np.int32), *_arguments(settings))

    def _shape(self, sentences: int, longest: int) -> tuple[int, int]:
        """Returns rows and width of the program for a batch."""
        width = max(LEAST_WIDTH, fixed_width(max(self._longest, longest)))
        most_rows = max(1, 2 * self._batch_size // width)
        few = not self._longest and sentences <= FEW_ROWS < most_rows // 2
        return FEW_ROWS if few else most_rows, width

    def search(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        outputs = inputs.settings.width
        sources = np.asarray(inputs.ids, np.int32)
        rows, width = self._shape(*sources.shape)
        found = [(np.zeros((0, outputs, 0), np.int32), np.zeros((0, outputs), np.float32))]
        for first in range(0, len(sources), rows):
            part = sources[first : first + rows]
            padded = np.full((rows, width), PAD, np.int32)
            padded[: len(part), : part.shape[1]] = part
            ids, scores, length = self.program(padded, *_arguments(inputs.settings))
            found.append((ids[: len(part), :, :length], scores[: len(part)]))
        longest = max(ids.shape[2] for ids, _ in found)
        all_ids = [np.pad(ids, ((0, 0), (0, 0), (0, longest - ids.shape[2]))) for ids, _ in found]
        return np.concatenate(all_ids), np.concatenate([scores for _, scores in found])


def _arguments(settings: SearchSettings) -> tuple[Any, ...]:
    """Returns the arguments of a program after the sources."""
    beam_size, extra_length, n, score_terms, _, spare = settings
    return score_terms, beam_size, extra_length, n, spare
