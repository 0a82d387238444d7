"""The graph of strings returns the outputs of `Translator`, for any text in any batch."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.translations import Translations
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from t2t_revival.serving.export import export
from t2t_revival.serving.module import NO_OUTPUT, ServingModule

LINES = [
    "the dog sees 3 houses .",
    "",
    "cat",
    " \t \u3000",
    "der cat sees " * 20,
    "a\nb\r\nc",
    "ß 👩‍👧",
    "a\0b",
]
OPTIONS = DecodeHParams(beam_size=3, extra_length=5, return_beams=True)


@pytest.fixture(scope="module")
def translator(make_translator):
    return make_translator(OPTIONS)


@pytest.fixture(scope="module")
def module(translator):
    return ServingModule(translator)


def test_sampling_is_not_the_setting_of_an_export(make_translator):
    with pytest.raises(T2TError, match="for requests, not for an export"):
        ServingModule(make_translator(DecodeHParams(sampling_method="random")))


def check(found, row, expected):
    """Checks that a row of the module's outputs is the translator's n-best list."""
    texts = [text.decode() for text in found["outputs"].numpy()[row]]
    scores = found["scores"].numpy()[row]
    assert texts[: len(expected)] == [output.text for output in expected]
    np.testing.assert_allclose(scores[: len(expected)], [output.score for output in expected], rtol=1e-4)
    assert (scores[len(expected) :] == np.float32(NO_OUTPUT)).all()
    assert set(texts[len(expected) :]) <= {""}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:line 5")
def test_all_lines_as_the_translator_has_them(translator, module):
    found = module.translate(tf.constant(LINES))
    assert found["outputs"].shape == found["scores"].shape == (len(LINES), 3)
    for row, expected in enumerate(translator.nbest(LINES)):
        check(found, row, expected)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_any_text(translator, module, text):
    check(module.translate(tf.constant([text])), 0, translator.nbest([text])[0])


def test_bytes_that_are_no_text_count_as_the_substitute(translator, module):
    found = module.translate(tf.constant([b"cat \xff\xfe", b"\xc3"]))
    for row, expected in enumerate(translator.nbest(["cat \ufffd\ufffd", "\ufffd"])):
        check(found, row, expected)


@pytest.mark.slow
def test_options_of_the_call(translator, module):
    """Options have a value per line or one for all; a line's outputs do not depend on the others."""
    lines, beams, alphas, extras, n = LINES[:3], [4, 2, 1], [0.0, 0.6, 1.0], [2, 3, 6], [3, 1, 1]
    found = module.translate_with_options(*map(tf.constant, (lines, beams, alphas, extras, n)))
    assert found["outputs"].shape == (3, 3)
    for row, (line, beam, alpha, extra, count) in enumerate(
        zip(lines, beams, alphas, extras, n, strict=True)
    ):
        options = DecodeHParams(beam_size=beam, alpha=alpha, extra_length=extra)
        alone = Translator(translator.model, translator.vocabulary, options, translator.max_length)
        check(found, row, alone.nbest([line], n=count)[0])
    usual = module.translate(lines)["outputs"].numpy()
    for one in ([3], [0.6], [5], [3]), (3, 0.6, 5, 3), ([3] * 3, 0.6, 5, [3]):
        found = module.translate_with_options(tf.constant(lines), *map(tf.constant, one))
        assert found["outputs"].shape == found["scores"].shape == (3, 3)
        assert (found["outputs"].numpy() == usual).all()


def test_no_lines(module):
    assert module.translate(tf.constant([], tf.string))["outputs"].shape == (0, 3)
    for values in ([3], [0.6], [5], [2]), ([], [], [], []), (3, 0.6, 5, 2):
        types = (tf.int32, tf.float32, tf.int32, tf.int32)
        options = [tf.constant(value, dtype) for value, dtype in zip(values, types, strict=True)]
        found = module.translate_with_options(tf.constant([], tf.string), *options)
        assert found["outputs"].shape[0] == found["scores"].shape[0] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"beam_size": [4, 4]},
            r"beam_size must be a scalar, or have one value for each .* shape is:\] \[2\]",
        ),
        ({"alpha": [[0.6, 0.6, 0.6]]}, r"alpha must be a scalar, or have one value .* shape is:\] \[1 3\]"),
        ({"n": np.ones(0, np.int32)}, r"n must be a scalar, or have one value for each line.*\] \[0\]"),
        ({"beam_size": 0}, "beam_size must be between 1 and"),
        ({"beam_size": [0]}, "beam_size must be between 1 and"),
        ({"extra_length": [-1]}, "extra_length must be between 0 and"),
        ({"alpha": [float("nan")]}, "alpha must be between"),
        ({"n": [5]}, "n must be between 1 and beam_size"),
        ({"n": [0]}, "n must be between 1 and beam_size"),
    ],
)
def test_options_that_do_not_fit_are_invalid_arguments(module, changes, message):
    options = {"beam_size": [4], "alpha": [0.6], "extra_length": [5], "n": [1], **changes}
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        module.translate_with_options(
            tf.constant(LINES[:3]), **{k: tf.constant(v) for k, v in options.items()}
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:line 5")
def test_decoders_of_another_kind_are_served(make_translator):
    other = make_translator(OPTIONS, decoder_self_attention="ssru", reverse_target=True)
    found = ServingModule(other).translate(tf.constant(LINES))
    for row, expected in enumerate(other.nbest(LINES)):
        check(found, row, expected)


@pytest.fixture(scope="module")
def shortlisted(make_translator, vocabulary):
    """A translator with shortlists of random translations, by line."""
    best = np.random.default_rng(0).integers(3, vocabulary.size, (vocabulary.size, 3)).astype(np.int32)
    best[0] = 0
    translations = Translations(best, np.array([5], np.int32), vocabulary.fingerprint)
    options = dataclasses.replace(OPTIONS, shortlist="by_line")
    return make_translator(options, translations=translations)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:line 5")
def test_a_shortlist_is_served_and_can_be_left_out(translator, shortlisted, tmp_path):
    loaded = tf.saved_model.load(str(export(shortlisted, tmp_path, "m"))).signatures
    assert set(loaded) == {
        "serving_default",
        "translate_with_options",
        "translate_with_shortlist",
        "translate_with_sampling",
        "translate_with_constraints",
        "score",
    }
    inputs = {"inputs": tf.constant(LINES), "beam_size": tf.constant([3]), "alpha": tf.constant([0.6])}
    inputs |= {"extra_length": tf.constant([5]), "n": tf.constant([3])}
    with_it, without = shortlisted.nbest(LINES), translator.nbest(LINES)
    assert [outputs[0].text for outputs in with_it] != [outputs[0].text for outputs in without]
    for signature, request, expected in (
        ("serving_default", {"inputs": inputs["inputs"]}, with_it),
        ("translate_with_shortlist", inputs, with_it),
        ("translate_with_options", inputs, without),
    ):
        found = loaded[signature](**request)
        for row, outputs in enumerate(expected):
            check(found, row, outputs)
