"""Lines with constraints: phrases are in the text as written, other lines stay the same to the bit."""

import itertools
import re

import keras
import numpy as np
import pytest

from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.decoding import engines
from t2t_revival.decoding.constrained_lines import room_of, stricter
from t2t_revival.decoding.ctranslate2_engine import CTranslate2Engine
from t2t_revival.decoding.guards import Guards
from t2t_revival.decoding.lexical_constraints import LineConstraints, count, merged, units_of
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import Translation
from t2t_revival.decoding.phrases import AT_ONCE, Spelling
from t2t_revival.decoding.preprocessor import Preprocessor, check_constrainable
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer

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
    keras.utils.set_random_seed(3)
    hparams = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2)
    return Translator(Transformer(hparams, vocabulary.size), vocabulary, OPTIONS, max_length=40)


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


def test_without_constraints_there_is_no_other_search(translator, monkeypatch):
    monkeypatch.delitem(vars(translator._engine), "lexical_search", raising=False)
    expected = translator.nbest(LINES[:2])
    assert translator.nbest(LINES[:2], constraints=[None, None]) == expected
    assert translator.nbest(LINES[:2], constraints=[LineConstraints(), None]) == expected
    assert "lexical_search" not in vars(translator._engine)


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
def test_what_does_not_fit_is_named(translator, with_options):
    small = with_options(beam_size=3, extra_length=8)
    phrases = ("cat", "sieht", *["zoo"] * 12)
    output = small.nbest(["dog"], constraints=[LineConstraints(phrases)])[0][0]
    assert {*output.missing} == {"zoo"}
    assert 0 < len(output.missing) <= 12
    assert count("cat", output.text) == count("sieht", output.text) == 1


@pytest.mark.slow
def test_guards_and_early_stopping_leave_the_phrases_there(with_options):
    options = {"no_repeat_ngram_size": 1, "min_length_ratio": 0.5, "max_length_ratio": 6.0}
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
        (LineConstraints(("cat",), ("cat",)), "'cat' is to be in the output and to be avoided"),
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 1}, "constraints need a beam: give beam_size=2"),
        ({"sampling_method": "random"}, "with sampling_method=random"),
        ({"mbr": "chrf"}, "with mbr=chrf"),
        ({"constrained": True}, "with outputs that are trees"),
        ({"shortlist": "on"}, "with shortlist=on"),
        ({"split_sentences": True}, "with split_sentences"),
    ],
)
def test_what_excludes_constraints_is_said(translator, options, message):
    preprocessor = Preprocessor(translator.vocabularies, None, DecodeHParams(**options), 30)
    with pytest.raises(T2TError, match=message):
        check_constrainable(preprocessor.options, preprocessor.problem)


def test_there_are_as_many_constraints_as_lines_and_no_beginnings(translator):
    with pytest.raises(T2TError, match="1 constraints for 2 lines"):
        translator.nbest(["cat", "dog"], constraints=[LineConstraints(("cat",))])
    with pytest.raises(T2TError, match="with forced beginnings"):
        translator.nbest(["cat"], prefixes=["dog"], constraints=[LineConstraints(("cat",))])


def test_ctranslate2_refuses_constraints():
    with pytest.raises(T2TError, match="CTranslate2 does not support constraints"):
        engines.lexical_search_of(CTranslate2Engine.__new__(CTranslate2Engine))


def test_another_search_avoids_what_was_spelled_otherwise(translator):
    spelling, ids = Spelling(translator.vocabulary), translator.vocabulary.encode("the dog")
    units = units_of(LineConstraints(("cat",), ("dog",)), spelling)
    assert stricter(units[:1], [ids], [-np.inf], spelling) is None
    assert stricter(units, [translator.vocabulary.encode("cat")], [-1.0], spelling) is None
    cat, dog = stricter(units, [ids], [-1.0], spelling)
    assert cat == units[0]
    assert dog != units[1]
    _, strict = stricter(units, [[]], [-np.inf], spelling)
    assert all(form.after == AT_ONCE for form in strict.forms)
    assert stricter([cat, strict], [[]], [-np.inf], spelling) == [cat]


@pytest.mark.parametrize(("ratio", "extra"), [(0.0, 5), (0.3, 50), (1.7, 50), (3.0, 2)])
@pytest.mark.parametrize("length", [1, 2, 7, 30])
def test_the_room_of_a_line_is_that_of_the_search(ratio, extra, length):
    source = np.array([[2] * (length - 1) + [1]], np.int32)
    _, most = Guards(max_length_ratio=ratio).bounds(source, np.array([[length + extra]], np.int32), 0)
    assert room_of(length, DecodeHParams(extra_length=extra, max_length_ratio=ratio)) == int(most[0, 0])


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
