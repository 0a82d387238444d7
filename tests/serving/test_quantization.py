"""Weights in bfloat16 and int8."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from t2t_revival import DecodeHParams, HParams, T2TError, Transformer, Translator
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.serving.export import export
from t2t_revival.serving.int8_weights import quantize_int8
from t2t_revival.serving.module import PRECISIONS, ServingModule

LINES = ["the dog sees 3 houses .", "", "a cat", "der dog sees 4 houses . " * 3]
MATRICES = arrays.arrays(
    np.float32,
    arrays.array_shapes(min_dims=2, max_dims=2),
    elements=st.floats(-8, 8, width=32, allow_subnormal=False),
)


@given(matrix=MATRICES, axis=st.sampled_from([0, 1]))
def test_nothing_is_farther_off_than_half_a_step(matrix, axis):
    integers, scales = quantize_int8(matrix, axis)
    assert np.abs(integers.astype(int)).max(initial=0) <= 127
    assert integers.dtype == np.int8
    assert scales.shape == tuple(size if i == axis else 1 for i, size in enumerate(matrix.shape))
    assert (np.abs(integers * scales - matrix) <= scales * 0.51).all()


def test_each_channel_uses_all_steps():
    integers, scales = quantize_int8(np.array([[0.5, -2.0, 0.0], [-0.25, 1.0, 0.0]], np.float32), axis=1)
    np.testing.assert_array_equal(integers, [[127, -127, 0], [-64, 64, 0]])
    np.testing.assert_allclose(scales, [[0.5 / 127, 2 / 127, 1]])


def translator(vocabulary, precision, **changes):
    keras.utils.set_random_seed(5)
    hparams = HParams(num_hidden_layers=2, hidden_size=8, filter_size=16, num_heads=2, **changes)
    model = Transformer(hparams, 310, dtype=precision)
    return Translator(model, vocabulary, DecodeHParams(beam_size=3, extra_length=4), max_length=30)


@pytest.fixture
def vocabulary(vocabulary_file):
    """A vocabulary per test, since each sets a random seed; see conftest.py."""
    return Vocabulary(vocabulary_file)


def assign_multiples(model):
    """Gives a model the values of its int8 weights."""
    for weight in model.weights:
        if weight.trainable and len(weight.shape) == 2:
            axis = 0 if "embeddings" in weight.path else 1
            integers, scales = quantize_int8(np.asarray(weight), axis)
            weight.assign(integers * scales)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["attention", "ssru"])
def test_int8_weights_are_the_multiples(vocabulary, kind):
    changes = {"decoder_self_attention": kind}
    expected, source = (translator(vocabulary, PRECISIONS["int8_weights"], **changes) for _ in range(2))
    module = ServingModule(source, "int8_weights")
    assign_multiples(expected.model)
    found = module.translate(tf.constant(LINES))
    for row, (output,) in enumerate(expected.nbest(LINES)):
        assert found["outputs"].numpy()[row, 0].decode() == output.text
        np.testing.assert_allclose(found["scores"].numpy()[row, 0], output.score, rtol=1e-3)


def as_tensorflow_serving(version):
    """Outputs for LINES by a session, which restores variables by name, as TensorFlow Serving does."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], str(version))
        signature = graph.signature_def["serving_default"]
        return session.run(signature.outputs["outputs"].name, {signature.inputs["inputs"].name: LINES})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quantize", "bytes_of_a_weight"),
    [
        pytest.param("none", 4, marks=pytest.mark.nightly),
        pytest.param("bfloat16", 2, marks=pytest.mark.nightly),
        ("int8_weights", 1),
    ],
)
def test_what_is_saved(vocabulary, tmp_path, quantize, bytes_of_a_weight):
    """The size of the files is that of the matrices; the folder returns the module's outputs."""
    source = translator(vocabulary, PRECISIONS[quantize])
    version = export(source, tmp_path, "translate_ende", quantize)
    reader = tf.train.load_checkpoint(str(version / "variables" / "variables"))
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    saved = sum(t.nbytes for t in tensors.values() if getattr(t, "ndim", 0) == 2)
    matrices = sum(int(np.prod(w.shape)) for w in source.model.weights if len(w.shape) == 2)
    scales = 4 * (310 + 2 * (3 * 8 + 8 + 16 + 8) + 2 * (3 * 8 + 8 + 8 + 16 + 8 + 16 + 8))
    kernel = 4 * 310 * 8  # of the softmax, turned
    beside = {"none": kernel, "bfloat16": 0, "int8_weights": scales}[quantize]
    assert saved == bytes_of_a_weight * matrices + beside
    module = ServingModule(source, quantize)
    expected = module.translate(tf.constant(LINES))
    np.testing.assert_array_equal(as_tensorflow_serving(version), expected["outputs"])
    loaded = tf.saved_model.load(str(version))
    scalars = loaded.translate_with_options(LINES, 3, 0.6, 4, 1)
    np.testing.assert_array_equal(scalars["outputs"], expected["outputs"])


def test_norms_stay_float32_under_bfloat16(vocabulary):
    model = translator(vocabulary, "bfloat16").model
    types = {w.path.rsplit("/", 1)[1]: w.dtype for w in model.weights}
    assert types["gamma"] == types["beta"] == "float32"
    assert types["embeddings"] == types["kernel_1"] == types["output"] == "bfloat16"


@pytest.mark.filterwarnings("ignore:invalid value")
def test_nan_stays_nan():
    integers, scales = quantize_int8(np.array([[0.1, np.nan], [0.3, 0.2]], np.float32), axis=1)
    assert np.isnan((integers * scales)[:, 1]).all()
    np.testing.assert_allclose((integers * scales)[:, 0], [0.1, 0.3], atol=0.002)


def test_a_model_of_another_precision_is_refused(vocabulary):
    for quantize in ("bfloat16", "int8_weights"):
        with pytest.raises(T2TError, match=f"quantize={quantize}: load the model with precision="):
            ServingModule(translator(vocabulary, "float32"), quantize)


def test_int8_products_are_refused(vocabulary):
    with pytest.raises(T2TError, match="a SavedModel does not support int8: give --quantize=int8_weights or"):
        ServingModule(translator(vocabulary, "float32"), "int8")
