"""Lines of several sentences have equal outputs from `Translator`, an exported model and a server."""

import dataclasses

import pytest

from t2t_revival import Translator
from t2t_revival.addons.ctranslate2.served import TranslatorModel
from t2t_revival.serving.signatures import DEFAULT
from tests.support.exported import USUAL, asking

pytest.importorskip("sentencex")
LINES = ["The dog sees 3 houses. A cat!  Der Hund?", "", " cat ", "the dog " * 40, "One. Two."]


@pytest.mark.slow
def test_a_document_has_the_same_output_everywhere(translator, served):
    document = [line for line in LINES if len(line) < 100] * 20
    options = dataclasses.replace(USUAL, split_sentences=True)
    expected = Translator(translator.model, translator.vocabulary, options, 30).nbest(document)
    found = asking(served, "split_sentences=True").nbest(document)
    assert [row[0].text for row in found] == [row[0].text for row in expected]
    assert found[0][0].score == pytest.approx(expected[0][0].score, rel=1e-4)
    assert len(found) == len(document)


@pytest.mark.slow
def test_lines_that_are_too_long_are_named(translator, served):
    for one in (served, TranslatorModel(translator)):
        found = one.predict(DEFAULT, {"inputs": LINES})
        assert found["truncated"] == [False, False, False, True, False]
    outputs = asking(served).nbest(LINES)
    assert [row[0].truncated for row in outputs] == [False, False, False, True, False]
    in_parts = asking(served, "split_sentences=True").nbest(LINES)
    assert not any(row[0].truncated for row in in_parts)
