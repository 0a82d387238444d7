"""The signature with constraints returns the outputs of `Translator`, for any phrases in any batch."""

import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import DecodeHParams, LineConstraints, T2TError, Translator
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.decoding.lexical_constraints import count
from t2t_revival.decoding.phrases import joins
from t2t_revival.serving.lexical.texts import are_joining, first_places, has_phrase, split_phrases
from t2t_revival.serving.module import ServingModule
from t2t_revival.serving.signatures import WITH_CONSTRAINTS, constraint_inputs
from tests.support.exported import make_translator

TEXT = [
    f"the {noun} sees {number} houses, and der {noun} sieht (nicht) 犬猫 ."
    for noun in ("dog", "dogs", "cat", "doghouse")
    for number in range(9)
]
LINES = ["the dog sees 3 houses .", "cat", "", "der cat sieht the dog sees 7 houses", "dog dog"]
WORDS = [
    "dog",
    "dogs",
    "cat",
    "the dog",
    "houses, and",
    "sieht",
    "(nicht)",
    "7",
    "zoo",
    "犬犬猫",
    "houses,",
    "dog dog",
]
WORDS += ["犬", "bye bye"]
OPTIONS = DecodeHParams(beam_size=3, extra_length=25, return_beams=True)
NONE = LineConstraints()


@pytest.fixture(scope="module", params=["sentencepiece", "subwords"])
def translator(request, tmp_path_factory):
    if request.param == "subwords":
        vocabulary = SubwordVocabulary.build_from_generator(TEXT, 100)
    else:
        vocabulary = Vocabulary.train(TEXT, tmp_path_factory.mktemp("vocabulary") / "v.spm", 330)
    return make_translator(vocabulary, OPTIONS, max_length=40)


@pytest.fixture(scope="module")
def module(translator):
    return ServingModule(translator)


def call(module, lines, constraints, beam_size=3, extra_length=25, n=3):
    options = beam_size, 0.6, extra_length, n
    phrases = {name: tf.constant(texts, tf.string) for name, texts in constraint_inputs(constraints).items()}
    found = module.translate_with_constraints(tf.constant(lines), *map(tf.constant, options), **phrases)
    return {name: values.numpy() for name, values in found.items()}


def check(found, expected):
    """Checks that the rows of the module's outputs are the translator's n-best lists."""
    for texts, scores, outputs in zip(found["outputs"], found["scores"], expected, strict=True):
        assert [text.decode() for text in texts[: len(outputs)]] == [output.text for output in outputs]
        np.testing.assert_allclose(scores[: len(outputs)], [one.score for one in outputs], rtol=1e-4)
        assert set(texts[len(outputs) :]) <= {b""}


@pytest.mark.nightly
@pytest.mark.slow
def test_random_phrases(translator, module):
    rng, lines = np.random.default_rng(1), LINES * 5
    given = [LineConstraints(tuple(rng.choice(WORDS, rng.integers(0, 4)).tolist())) for _ in lines]
    check(call(module, lines, given), translator.nbest(lines, constraints=given))


@pytest.mark.slow
@pytest.mark.nightly
def test_avoided_words(translator, module):
    """Words of the outputs are avoided, and then those of the new outputs too, beside phrases."""
    given = [NONE] * len(LINES)
    for number in range(4):
        outputs = translator.nbest(LINES, constraints=given)
        words = [re.findall(r"\w+", " ".join(one.text for one in row)) for row in outputs]
        avoid = [{*one.avoid, *row[:: number + 1][:3]} for one, row in zip(given, words, strict=True)]
        wanted = ("bye bye", "犬") if number % 2 else ()
        given = [LineConstraints(wanted, tuple(sorted(row - {"bye", "犬"}))) for row in avoid]
        check(call(module, LINES, given), translator.nbest(LINES, constraints=given))


@pytest.mark.slow
def test_the_last_phrases_are_left_out_where_there_is_no_room(translator, module):
    options = DecodeHParams(beam_size=3, extra_length=8, return_beams=True)
    small = Translator(translator.model, translator.vocabulary, options, translator.max_length)
    given = [LineConstraints(("cat", "sieht", *["zoo"] * 12)), LineConstraints(("zoo", "cat", "dog"))]
    found = call(module, ["dog", "the cat"], given, extra_length=8)
    check(found, small.nbest(["dog", "the cat"], constraints=given))
    assert b"sieht" in found["outputs"][0, 0]


@pytest.mark.slow
@pytest.mark.nightly
def test_each_line_has_its_own_options(translator, module):
    given = [LineConstraints(("cat",), ("the",)), NONE, LineConstraints(("sieht", "dog"))]
    lines = [LINES[row] for row in (0, 1, 3)]
    beams, n = [4, 1, 2], [3, 1, 2]
    found = call(module, lines, given, beams, [20, 3, 30], n)
    for row, beam in enumerate(beams):
        options = DecodeHParams(beam_size=beam, extra_length=[20, 3, 30][row])
        alone = Translator(translator.model, translator.vocabulary, options, translator.max_length)
        outputs = alone.nbest([lines[row]], n[row], constraints=[given[row]])
        check({name: found[name][row : row + 1] for name in ("outputs", "scores")}, outputs)


@pytest.mark.slow
def test_other_lines_are_those_of_the_options_alone(module):
    given = [LineConstraints(("cat",)) if row % 2 else NONE for row in range(len(LINES))]
    found = call(module, LINES, given)
    options = map(tf.constant, (3, 0.6, 25, 3))
    expected = module.translate_with_options(tf.constant(LINES[::2]), *options)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name][::2], values)


@pytest.mark.slow
def test_no_lines_and_no_phrases(module):
    assert call(module, tf.zeros([0], tf.string), [])["outputs"].shape[0] == 0
    assert call(module, [""], [LineConstraints(("cat",), ("dog",))])["outputs"].tolist() == [[b"", b"", b""]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("constraints", "changes", "message"),
    [
        (LineConstraints(("cat",), ("cat",)), {}, "to be in the output, with a phrase that is to be avoided"),
        (LineConstraints(("the cat",), ("dog", "cat")), {}, r"to be avoided: choose one:\] \[\"?the cat"),
        (LineConstraints(("zoo " * 90 + "zoo",)), {}, "a phrase is longer than the output may be"),
        (LineConstraints(("cat",)), {"beam_size": 1, "n": 1}, "constraints need a beam_size of 2 or more"),
        (LineConstraints(("a  b ",)), {"n": 4}, "n must be between 1 and beam_size"),
    ],
)
def test_faults_are_invalid_arguments(module, constraints, changes, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call(module, ["cat", "dog"], [NONE, constraints], **changes)


@pytest.mark.slow
def test_a_phrase_that_cannot_be_spelled(translator, module):
    phrase = LineConstraints(("a\u2581\ue000b",))
    try:
        expected = translator.nbest(["cat"], constraints=[phrase])
    except T2TError:
        with pytest.raises(tf.errors.InvalidArgumentError, match="cannot spell"):
            call(module, ["cat"], [phrase])
    else:
        check(call(module, ["cat"], [phrase]), expected)


def test_right_to_left_models_have_no_such_signature(vocabulary):
    translator = make_translator(vocabulary, OPTIONS, reverse_target=True)
    assert WITH_CONSTRAINTS not in ServingModule(translator).signatures


LETTERS = st.text(st.sampled_from("ab .-é犬1\u0301"), min_size=1, max_size=8)


def test_phrases_of_lines():
    lines = ["Hund\n den  Hund \r\n\n\u3000a\rb", "", "\n \n", b"\xff"]
    found = split_phrases(tf.constant(lines)).numpy()
    expected = [["Hund", "den  Hund", "a b"], ["", "", ""], ["", "", ""], ["\ufffd", "", ""]]
    assert [[text.decode() for text in row] for row in found] == expected
    assert split_phrases(tf.constant([""])).shape == (1, 1)


def test_repetitions_and_pairs():
    is_first, equal = first_places(tf.constant([["a", "b", "a", ""]]))
    assert is_first.numpy().tolist() == [[True, True, False, False]]
    assert np.argwhere(equal.numpy()[0]).tolist() == [[0, 0], [0, 2], [1, 1], [2, 0], [2, 2]]


@settings(max_examples=25, deadline=None)
@given(
    text=st.text(st.sampled_from("ab .-é犬1\u0301"), max_size=12),
    phrases=st.lists(LETTERS, min_size=2, max_size=2),
)
def test_whole_words(text, phrases):
    found = has_phrase(tf.constant([text, "a"]), tf.constant([phrases, ["", "a"]])).numpy()
    assert found.tolist() == [[count(phrase, text) > 0 for phrase in phrases], [False, True]]


def test_characters_that_form_words():
    codes = [code for code in range(0x3200) if not 0xD800 <= code < 0xE000]
    expected = [joins(chr(code)) for code in codes]
    assert are_joining(tf.constant(codes)).numpy().tolist() == expected
