"""Trained models in the format of LiteRT (TensorFlow Lite): encoder and search, from ids to ids."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from t2t_revival.addons.ctranslate2.format import opened_vocabularies, write_vocabularies
from t2t_revival.data.vocabulary.text_encoder import EOS
from t2t_revival.decoding.engine import Inputs, SearchSettings
from t2t_revival.decoding.search.search_graph import SearchGraph
from t2t_revival.model.products import Matrix, replace_matrices
from t2t_revival.serving.int8_weights import quantize_int8

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from t2t_revival.decoding.translator import Translator
    from t2t_revival.serving.export import Export

MODEL = "model.tflite"
STEPS = """\
interpreter = ai_edge_litert.interpreter.Interpreter({model!r})
found = interpreter.get_signature_runner()(inputs=numpy.array([[*{source}.encode("..."), {eos}]], "int32"))
print({target}.decode([int(token) for token in found["outputs"][0, 0] if token > {eos}]))"""


def export_litert(what: Export) -> tuple[Path, str]:
    """Writes a version; also returns the Python that translates with it. See `write_litert`."""
    version = what.write_version(lambda folder: write_litert(what.translator, folder, what.quantize))
    opening, sides = opened_vocabularies(what.translator.vocabularies, version)
    steps = STEPS.format(model=str(version / MODEL), eos=EOS, **sides)
    return version, f"next, in Python, with ai-edge-litert:\n{opening}{steps}"


def write_litert(translator: Translator, folder: Path, quantize: str = "none") -> None:
    """Writes a folder with a flatbuffer for LiteRT's interpreters and the vocabularies.

    The flatbuffer's signature takes "inputs", int32 [batch, source], each row with EOS at its end and padded
    with 0. It returns "outputs", int32 [batch, n, length], best first, each with EOS at its end and padded
    with 0, and "scores", float32 [batch, n]. Options of the search are the translator's.

    Args:
        translator: model, vocabulary and options; the model's precision is float32.
        folder: must not exist.
        quantize: "none" (float32), or "int8": matrices are stored as int8 and multiply rows that are
            quantised at each call, by XNNPACK.
    """
    options, model = translator.options, translator.model
    weights = partial(_constants, [(each, np.asarray(each)) for each in model.weights], quantize)
    graph = SearchGraph(model, translator.vocabularies.targets, options, weights)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, "inputs")], autograph=False)
    def search(inputs: Any) -> dict[str, Any]:
        outputs, scores = graph.search(Inputs(inputs, SearchSettings.of(options, options.outputs)))
        return {"outputs": outputs, "scores": scores}

    converter = tf.lite.TFLiteConverter.from_concrete_functions([search.get_concrete_function()], model)
    if quantize == "int8":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    flatbuffer = converter.convert()
    folder.mkdir()
    (folder / MODEL).write_bytes(flatbuffer)
    write_vocabularies(translator.vocabularies, folder)


class _Embedding(Matrix):
    """An embedding as int8 with a scale for each token, where the converter would have one for all."""

    def __init__(self, table: np.ndarray) -> None:
        self._table = table
        integers, scales = quantize_int8(table, axis=0)
        self._integers = tf.constant(integers)
        self._scales = tf.constant(scales.view(np.int32))  # the converter would quantise float32

    def multiply(self, rows: Any) -> Any:
        return rows @ tf.constant(self._table)

    def take(self, ids: Any) -> Any:
        scales = tf.bitcast(tf.gather(self._scales, ids), tf.float32)
        return tf.cast(tf.gather(self._integers, ids), tf.float32) * scales

    def transpose(self) -> Any:
        return tf.constant(self._table.T)


@contextmanager
def _constants(weights: Sequence[tuple[Any, np.ndarray]], quantize: str) -> Iterator[None]:
    """Makes a scope in which weights are constants of the graph."""
    scope, tables = keras.StatelessScope(), []
    for weight, values in weights:
        scope.add_update((weight, tf.constant(values)))
        if quantize == "int8" and weight.name == "embeddings":
            tables.append((weight, _Embedding(values)))
    with scope, replace_matrices(tables):
        yield
