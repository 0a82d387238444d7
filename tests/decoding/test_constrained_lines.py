"""Lines with constraints: phrases are in the text as written, other lines stay the same to the bit."""

import itertools
import re

import numpy as np
import pytest

from t2t_revival import DecodeHParams, LineConstraints, T2TError, Translation, Translator
from t2t_revival.addons.lexical.constraints import count, merged
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from tests.support.exported import make_translator

TEXT = [
    f"the {noun} sees {number} houses, and der {noun} sieht (nicht) ."
    for noun in ("dog", "dogs", "cat", "doghouse")
    for number in range(9)
]
LINES = ["the dog sees 3 houses .", "cat", "", "der cat sieht the dog sees 7 houses", "dog dog"]
WORDS = ["dog", "dogs", "cat", "the dog", "houses, and", "sieht", "(nicht)", "7", "zoo"]
OPTIONS = DecodeHParams(beam_size=3, extra_length=25)


@pytest.fixture(scope="module", params=["sentencepiece", "subwords"])
def translator(request, tmp_path_factory):
    if request.param == "subwords":
        vocabulary = SubwordVocabulary.build_from_generator(TEXT, 100)
    else:
        vocabulary = Vocabulary.train(TEXT, tmp_path_factory.mktemp("vocabulary") / "v.spm", 320)
    return make_translator(vocabulary, OPTIONS, max_length=40)


@pytest.fixture
def with_options(translator):
    def make(**options):
        return Translator(
            translator.model, translator.vocabulary, DecodeHParams(**options), translator.max_length
        )

    return make


@pytest.mark.slow
def test_other_lines_of_the_batch_stay_the_same_to_the_bit(translator):
    expected = translator.nbest(LINES, n=3)
    for given in itertools.product((True, False), repeat=len(LINES)):
        if sum(given) not in (1, 2):
            continue
        constraints = [LineConstraints(("cat",)) if one else None for one in given]
        found = translator.nbest(LINES, n=3, constraints=constraints)
        assert [x for x, one in zip(found, given, strict=True) if not one] == [
            x for x, one in zip(expected, given, strict=True) if not one
        ]
        again = translator.nbest(LINES, n=3, constraints=constraints)
        assert again == found


def test_empty_constraints_are_none(translator):
    expected = translator.nbest(LINES[:2])
    assert translator.nbest(LINES[:2], constraints=[None, None]) == expected
    assert translator.nbest(LINES[:2], constraints=[LineConstraints(), None]) == expected


@pytest.mark.slow
def test_random_phrases_are_in_all_outputs_as_they_are_written(translator):
    rng = np.random.default_rng(1)
    for _ in range(6):
        constraints = [LineConstraints(tuple(rng.choice(WORDS, rng.integers(1, 4)).tolist())) for _ in LINES]
        for one, outputs in zip(
            constraints, translator.nbest(LINES, n=3, constraints=constraints), strict=True
        ):
            for output in outputs:
                if output.text:
                    assert output.missing == one.missing(output.text) == ()
                    for phrase in one.phrases:
                        assert count(phrase, output.text)


@pytest.mark.slow
def test_avoided_words_are_in_no_output(translator):
    free = translator.nbest(LINES, n=3)
    avoid = [tuple(re.findall(r"\w+", " ".join(one.text for one in outputs)))[:4] for outputs in free]
    assert sum(map(len, avoid)) > 4
    found = translator.nbest(LINES, n=3, constraints=[LineConstraints(avoid=words) for words in avoid])
    for words, outputs in zip(avoid, found, strict=True):
        for output in outputs:
            assert output.present == ()
            assert not any(count(word, output.text) for word in words)


@pytest.mark.slow
@pytest.mark.parametrize("room", [{"extra_length": 8}, {"extra_length": 50, "max_length_ratio": 16.0}])
def test_what_does_not_fit_is_named(with_options, room):
    small = with_options(beam_size=3, **room)
    phrases = ("cat", "sieht", *["zoo"] * 12)
    output = small.nbest(["dog"], constraints=[LineConstraints(phrases)])[0][0]
    assert {*output.missing} == {"zoo"}
    assert 0 < len(output.missing) <= 12
    assert count("cat", output.text) == count("sieht", output.text) == 1


@pytest.mark.slow
def test_guards_and_early_stopping_leave_the_phrases_there(with_options):
    options = {"no_repeat_ngram_size": 1, "min_length_ratio": 0.5, "max_length_ratio": 16.0}
    guarded = with_options(beam_size=2, early_stopping=True, repetition_penalty=1.2, **options)
    wanted = LineConstraints(("dog", "cat", "dog"))
    for outputs in guarded.nbest(LINES[:2], n=2, constraints=[wanted] * 2):
        assert all(wanted.missing(output.text) == () for output in outputs)


def test_a_blank_line_stays_blank_and_lacks_its_phrases(translator):
    found = translator.nbest([" "], constraints=[LineConstraints(("cat",), ("dog",))])
    assert found == [[Translation("", 0.0, missing=("cat",))]]


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (LineConstraints(("cat",), ("cat",)), "the phrase 'cat' has 'cat', which is to be avoided"),
        (LineConstraints(("the cat",), ("cat",)), "the phrase 'the cat' has 'cat', which is to be avoided"),
        (LineConstraints(("", "cat")), "a phrase of the constraints is empty"),
        (LineConstraints(avoid=(" ",)), "a phrase of the constraints is empty"),
        (LineConstraints(("a\ud800",)), "not valid Unicode"),
        (LineConstraints(("zoo " * 90 + "zoo",)), "tokens, and the output may have"),
    ],
)
def test_wrong_constraints_are_named_with_their_line(translator, constraints, message):
    with pytest.raises(T2TError, match=rf"^line 8: .*{message}"):
        translator.nbest(["cat", "dog"], constraints=[None, constraints], first_line=7)


def test_there_are_as_many_constraints_as_lines_and_no_beginnings(translator):
    with pytest.raises(T2TError, match="1 constraints for 2 lines"):
        translator.nbest(["cat", "dog"], constraints=[LineConstraints(("cat",))])
    with pytest.raises(T2TError, match="constraints cannot be combined with forced beginnings"):
        translator.nbest(["cat"], prefixes=["dog"], constraints=[LineConstraints(("cat",))])


@pytest.mark.parametrize(
    ("phrases", "expected"),
    [
        (("a b", "b c"), ("a b c",)),
        (("a b", "c"), ("a b", "c")),
        (("b", "a b c"), ("a b c",)),
        (("a", "a"), ("a", "a")),
        (("c a", "a b", "b c"), None),
        (("a", "a", "a b"), None),
    ],
)
def test_phrases_that_share_words(phrases, expected):
    found = merged(phrases)
    assert LineConstraints(phrases).missing(" ".join(found)) == ()
    assert expected is None or found == expected


def test_missing_and_present_phrases_are_whole_words():
    one = LineConstraints(("dog", "dog", "cat", "狗"), ("og", "the"))
    assert one.missing("the dog's doghouse, 我爱狗") == ("dog", "cat")
    assert one.present("the dog") == ("the",)
    assert count("a b", "a b a b") == 2
