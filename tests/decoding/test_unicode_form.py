"""Text in another Unicode form than the training data: what says so, and `unicode_form`, which changes it."""

import re
import unicodedata
import warnings

import pytest

from t2t_revival import DecodeHParams, LineConstraints, Terminology
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.serving.export import export
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.served_translator import ServedTranslator
from tests.support.exported import make_translator

TEXT = [f"der {noun} hört {number} große Häuser" for noun in ("Bär", "Löwe") for number in range(9)]
LINES = ["der Bär hört 3 große Häuser", "", "abc", "Löwe"]


def nfd(text):
    return unicodedata.normalize("NFD", text)


DECOMPOSED = [*map(nfd, LINES)]
NOTE = "2 lines are not in Unicode's composed form (NFC), unlike the training data: give --normalize=nfc"


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    return Vocabulary.train(TEXT, tmp_path_factory.mktemp("vocabulary") / "v.spm", 310)


def translator(vocabulary, **options):
    return make_translator(vocabulary, DecodeHParams(beam_size=2, extra_length=4, **options), max_length=40)


@pytest.fixture(scope="module")
def plain(vocabulary):
    return translator(vocabulary)


@pytest.fixture(scope="module")
def composing(vocabulary):
    return translator(vocabulary, unicode_form="nfc")


@pytest.mark.slow
def test_decomposed_lines_are_named_and_composed_ones_are_not(plain):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        composed = plain.translate(LINES)
    with pytest.warns(UserWarning, match=re.escape(NOTE)):
        assert plain.translate(DECOMPOSED) != composed


@pytest.mark.slow
def test_with_unicode_form_decomposed_lines_are_composed_ones(plain, composing, recwarn):
    assert composing.nbest(DECOMPOSED, n=2) == plain.nbest(LINES, n=2) == composing.nbest(LINES, n=2)
    pairs = [("der Bär", "Löwe"), ("Häuser", "hört")]
    decomposed = [tuple(map(nfd, pair)) for pair in pairs]
    assert composing.score(decomposed) == plain.score(pairs) != plain.score(decomposed)
    assert composing.encode(nfd("Bär")) == plain.encode("Bär") != plain.encode(nfd("Bär"))
    prefixes = ["Löwe", "", "", "der"]
    composed = plain.nbest(LINES, prefixes=prefixes)
    assert composing.nbest(DECOMPOSED, prefixes=[*map(nfd, prefixes)]) == composed
    assert not recwarn


@pytest.mark.slow
def test_the_other_way_round(vocabulary, plain):
    decomposing = translator(vocabulary, unicode_form="nfd")
    with pytest.warns(UserWarning, match="NFC"):
        assert decomposing.translate(LINES) == plain.translate(DECOMPOSED)


@pytest.mark.slow
def test_terms_and_phrases_match_whatever_their_form(plain, recwarn):
    written = Terminology({"Bär": "Löwe"}).constraints("ein Bär")
    for term in ("Bär", nfd("Bär")):
        for target in ("Löwe", nfd("Löwe")):
            for line in ("ein Bär", nfd("ein Bär")):
                found = Terminology({term: target}).constraints(line)
                (term_of_line,) = found.terms
                assert line[term_of_line.start : term_of_line.end] == term_of_line.source == line[4:]
                outputs = plain.nbest([line], constraints=[found], on_truncation=lambda _: None)
                assert "Löwe" in outputs[0][0].text
                assert not outputs[0][0].missing
    assert written.terms[0] == ("Bär", "Löwe", 4)


@pytest.mark.parametrize("phrase", ["Löwe", nfd("Löwe")])
@pytest.mark.parametrize("text", ["ein Löwe", nfd("ein Löwe")])
def test_an_output_has_a_phrase_in_any_form(phrase, text):
    assert LineConstraints((phrase,)).missing(text) == ()
    assert LineConstraints(avoid=(phrase,)).present(text) == (phrase,)


@pytest.mark.slow
def test_exported_models_tell_their_form_and_compose_in_the_graph(plain, composing, tmp_path):
    served = [
        ServedTranslator(FolderModel(export(each, tmp_path / name, "m")))
        for name, each in (("plain", plain), ("composing", composing))
    ]
    expected = plain.translate(LINES)
    assert served[1].translate(DECOMPOSED) == served[1].translate(LINES) == expected
    raw = [each.model.predict("serving_default", {"inputs": DECOMPOSED})["outputs"] for each in served]
    assert [row[0].decode() for row in raw[1]] == expected != [row[0].decode() for row in raw[0]]
    with pytest.warns(UserWarning, match="2 lines are not in Unicode's composed form"):
        assert served[0].translate(DECOMPOSED) != expected
    by_request = ServedTranslator(
        served[0].model, DecodeHParams(beam_size=2, extra_length=4, unicode_form="nfc")
    )
    assert by_request.translate(DECOMPOSED) == expected
