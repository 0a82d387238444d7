"""Lines of several sentences have equal outputs from `Translator`, an exported model and a server."""

import pytest

from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from t2t_revival.serving.export import export
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.served_translator import ServedOptions, ServedTranslator
from t2t_revival.serving.signatures import DEFAULT
from t2t_revival.serving.translator_model import TranslatorModel

pytest.importorskip("sentencex")
LINES = ["The dog sees 3 houses. A cat!  Der Hund?", "", " cat ", "the dog " * 40, "One. Two."]
OPTIONS = "beam_size=2,extra_length=3"


@pytest.fixture(scope="module")
def translator(make_translator):
    return make_translator(DecodeHParams.parse(OPTIONS), max_length=30)


@pytest.fixture(scope="module")
def model(translator, tmp_path_factory):
    return FolderModel(export(translator, tmp_path_factory.mktemp("export"), "m"))


@pytest.mark.slow
def test_a_document_has_the_same_output_everywhere(translator, model):
    document = [line for line in LINES if len(line) < 100] * 20
    options = DecodeHParams.parse(f"{OPTIONS},split_sentences=True")
    expected = Translator(translator.model, translator.vocabulary, options, 30).nbest(document)
    served = ServedTranslator(model, ServedOptions.parse("split_sentences=True", None))
    found = served.nbest(document)
    assert [row[0].text for row in found] == [row[0].text for row in expected]
    assert found[0][0].score == pytest.approx(expected[0][0].score, rel=1e-4)
    assert len(found) == len(document)


@pytest.mark.slow
def test_lines_that_are_too_long_are_named(translator, model):
    for one in (model, TranslatorModel(translator)):
        found = one.predict(DEFAULT, {"inputs": LINES})
        assert found["truncated"] == [False, False, False, True, False]
    outputs = ServedTranslator(model, ServedOptions.parse("", None)).nbest(LINES)
    assert [row[0].truncated for row in outputs] == [False, False, False, True, False]
    in_parts = ServedTranslator(model, ServedOptions.parse("split_sentences=True", None)).nbest(LINES)
    assert not any(row[0].truncated for row in in_parts)
    with pytest.raises(T2TError, match="mbr is for t2t-decoder"):
        ServedOptions.parse("mbr=chrf", None)
