"""Arguments of `ServedTranslator`: as those of `Translator`."""

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest

from t2t_revival import DecodeHParams, LineConstraints, Translator, registry
from t2t_revival.addons.ctranslate2.served import TranslatorModel
from t2t_revival.addons.lexical.constraints import Term
from t2t_revival.decoding.files.part_file import OutputStream
from t2t_revival.decoding.files.resumable import Report, translate_lines
from t2t_revival.decoding.lines.pipeline import Lines
from t2t_revival.serving.served_translator import ServedTranslator
from t2t_revival.serving.signatures import DEFAULT
from tests.support.exported import HEADS, USUAL, asking


class Echo:
    """A served model whose outputs are its inputs."""

    where = "echo"

    def predict(self, signature, inputs):
        return {
            "outputs": [[line] for line in inputs["inputs"]],
            "scores": [[-1.0] for _ in inputs["inputs"]],
            "truncated": [False for _ in inputs["inputs"]],
        }


TRANSLATOR = ServedTranslator(Echo())
SENTENCES = ["The dog sees 3 houses. A cat!  Der Hund?", "", " cat ", "the dog " * 40, "One. Two."]


def test_a_single_string_is_a_line():
    ((output,),) = TRANSLATOR.nbest("a cat")
    assert output.text == "a cat"
    assert TRANSLATOR.nbest(line for line in ["a cat"]) == [[output]]


def test_a_parser_neither_describes_itself_nor_splits_sentences():
    class Cutting(Echo):
        def predict(self, signature, inputs):
            assert signature == DEFAULT
            return {**super().predict(signature, inputs), "truncated": [True for _ in inputs["inputs"]]}

    parser, stream, notes = ServedTranslator(Cutting(), problem=registry.problem("parse_wsj")), BytesIO(), []
    output, nothing = OutputStream(stream, "stdout"), [LineConstraints()]
    asked = Lines(["cat"], constraints=nothing)
    translate_lines(parser, asked, output, Report("x", notes.append), as_json=True)
    assert b'"truncated": true' in stream.getvalue()
    assert notes[0] == "warning: x, line 1: longer than the model's inputs: its end is left out"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ("mbr=chrf,candidates=5,beam_size=2,extra_length=3", ["the dog sees the house", "", "cat"]),
        ("mbr=bleu,candidates=3,beam_size=2,extra_length=3,split_sentences=True", ["A dog. A cat.", "cat"]),
        ("markup=html,beam_size=2,extra_length=3", ["the <b>dog</b> sees<br/> houses", "<i></i>", "a cat"]),
        ("markup=placeholders,beam_size=2,extra_length=3,split_sentences=True", ["A {dog}. The cat {1}."]),
    ],
)
def test_outputs_are_those_of_the_translator(translator, served, settings, lines):
    if "split_sentences" in settings:
        pytest.importorskip("sentencex")
    options = DecodeHParams.parse(settings)
    local = Translator(translator.model, translator.vocabulary, options, 30, alignment_heads=HEADS)
    assert_same(asking(served, settings).nbest(lines), local.nbest(lines))


@pytest.mark.slow
def test_terms_are_checked_by_the_heads_of_the_export(translator, served):
    term = Term("dog", "Hund", 4)
    constraints = [LineConstraints(("Hund",), terms=(term,)), None]
    lines, settings = ["the dog sees the house", "cat"], "beam_size=3,extra_length=9"
    local = Translator(translator.model, translator.vocabulary, DecodeHParams.parse(settings), 30)
    local.find_heads = lambda: HEADS
    by_request = asking(served, settings)
    assert by_request.why_unchecked == ""
    found = by_request.nbest(lines, constraints=constraints)
    assert_same(found, local.nbest(lines, constraints=constraints))
    assert "Hund" in found[0][0].text


def assert_same(found, expected):
    for outputs, others in zip(found, expected, strict=True):
        scores = [output.score for output in outputs], [output.score for output in others]
        np.testing.assert_allclose(*scores, rtol=1e-4)
        nothing = {"score": 0.0, "details": None}
        assert [replace(one, **nothing) for one in outputs] == [replace(one, **nothing) for one in others]


@pytest.mark.slow
def test_a_document_has_the_same_output_everywhere(translator, served):
    pytest.importorskip("sentencex")
    document = [line for line in SENTENCES if len(line) < 100] * 20
    options = replace(USUAL, split_sentences=True)
    expected = Translator(translator.model, translator.vocabulary, options, 30).nbest(document)
    found = asking(served, "split_sentences=True").nbest(document)
    assert [row[0].text for row in found] == [row[0].text for row in expected]
    assert found[0][0].score == pytest.approx(expected[0][0].score, rel=1e-4)
    assert len(found) == len(document)


@pytest.mark.slow
def test_lines_that_are_too_long_are_named(translator, served):
    pytest.importorskip("sentencex")
    for one in (served, TranslatorModel(translator)):
        found = one.predict(DEFAULT, {"inputs": SENTENCES})
        assert found["truncated"] == [False, False, False, True, False]
    outputs = asking(served).nbest(SENTENCES)
    assert [row[0].truncated for row in outputs] == [False, False, False, True, False]
    in_parts = asking(served, "split_sentences=True").nbest(SENTENCES)
    assert not any(row[0].truncated for row in in_parts)
