"""Outputs of an input as people get them: each text once, and those that are cut with a word about it."""

import json
from io import BytesIO
from types import SimpleNamespace

import pytest

from t2t_revival import DecodeHParams, Translation
from t2t_revival.data.vocabulary.text_encoder import EOS
from t2t_revival.decoding.details import Details
from t2t_revival.decoding.files.part_file import OutputStream
from t2t_revival.decoding.files.resumable import Report, translate_lines
from t2t_revival.decoding.lines.batching import BatchPlan
from t2t_revival.decoding.lines.line_decoder import as_candidates
from t2t_revival.decoding.lines.notes import note_faulty
from t2t_revival.decoding.lines.paragraphs import Paragraph, Segment, join_outputs
from t2t_revival.decoding.lines.pipeline import Lines, LineTranslator
from t2t_revival.decoding.outputs import MISSING, Candidate

BEAM = DecodeHParams(beam_size=4, return_beams=True)
SAMPLES = DecodeHParams(beam_size=4, return_beams=True, sampling_method="random")


class Found(LineTranslator):
    """Has the same candidates for each line; its problem, if any, makes small letters of them."""

    vocabularies = why_unchecked = None
    max_length, num_columns, places = 40, 3, ()

    def __init__(self, candidates, options=BEAM, small=False):
        self.options, self._candidates = options, candidates
        self.problem = small and SimpleNamespace(
            preprocess=lambda text, tokenized: text,
            postprocess=lambda source, text: (text.lower(), text != text.lower()),
            target_lang="",
        )

    def origin(self, has_terms=False):
        return {}

    def form_for(self, lines):
        return ""

    def open(self, request, on_truncation):
        return FoundSearch(self._candidates, len(request.pieces))


class FoundSearch:
    constrained = None

    def __init__(self, candidates, inputs):
        self._candidates, self.plan = candidates, BatchPlan([1] * inputs, 10, sizes=(1,))

    async def free(self, indices):
        return dict.fromkeys(indices, self._candidates)

    async def annotate(self, outputs, for_terms):
        return [Details((), (), ids, ()) for _, _, ids in outputs]


def candidates(*texts):
    """Candidates of scores -1, -2 and so on, with ids 0, 1 and so on."""
    return [Candidate(text, -float(rank), (rank - 1,)) for rank, text in enumerate(texts, start=1)]


def listed(translator, n=None):
    (outputs,) = translator.nbest(["a line"], n)
    return [(output.text, output.score) for output in outputs]


def test_a_list_has_each_text_once_and_further_outputs_fill_it():
    found = Found(candidates("a", "b", "a", "b", "c", "d", "e"))
    assert listed(found) == [("a", -1.0), ("b", -2.0), ("c", -5.0), ("d", -6.0)]
    assert listed(found, n=2) == [("a", -1.0), ("b", -2.0)]
    assert listed(found, n=1) == [("a", -1.0)]
    assert listed(Found(candidates("a", "a", "a"))) == [("a", -1.0)]


def test_texts_that_the_problem_makes_equal_are_one():
    assert listed(Found(candidates("A", "a", "B"), small=True)) == [("a", -1.0), ("b", -3.0)]


def test_details_are_those_of_the_tokens_of_an_output():
    options = DecodeHParams(beam_size=4, return_beams=True, token_scores=True)
    ((first, second),) = Found(candidates("a", "a", "b"), options).nbest(["a line"])
    assert (first.details.tokens, second.details.tokens) == ((0,), (2,))


def test_samples_are_listed_as_they_were_drawn():
    assert listed(Found(candidates("b", "a", "b"), SAMPLES)) == [("b", -1.0), ("a", -2.0), ("b", -3.0)]


@pytest.mark.parametrize("sampling", ["argmax", "random"])
def test_minimum_bayes_risk_counts_equal_candidates(sampling):
    changes = {"mbr": "chrf", "candidates": 5, "sampling_method": sampling}
    options = DecodeHParams(beam_size=4, return_beams=True, **changes)
    (outputs,) = Found(candidates("cat", "dog", "dog", "dog", "house"), options).nbest(["a line"])
    texts = [output.text for output in outputs]
    assert texts[0] == "dog"  # three of five are equal to it
    assert texts.count("dog") == (3 if sampling == "random" else 1)


def test_missing_outputs_are_empty_columns():
    stream = BytesIO()
    options = DecodeHParams(beam_size=3, return_beams=True, write_beam_scores=True)
    translate_lines(
        Found(candidates("a", "a"), options), Lines(["one"]), OutputStream(stream, "stdout"), Report("x")
    )
    assert stream.getvalue().decode() == "a\t-1.00\t\t-inf\t\t-inf\n"


@pytest.mark.parametrize(
    ("options", "n", "spare"),
    [
        (BEAM, 1, 0),
        (BEAM, 2, 2),
        (BEAM, 4, 4),
        (SAMPLES, 4, 0),  # they depend on how many are drawn
        (DecodeHParams(mbr="chrf"), 4, 0),  # the choice is among the candidates alone
        (DecodeHParams(coverage_penalty=0.2), 4, 0),
    ],
)
def test_spare_outputs_are_those_of_a_list_of_a_search(options, n, spare):
    assert options.spare_of(n) == spare


def test_an_output_without_its_end_is_cut():
    vocabulary = SimpleNamespace(decode=lambda ids: "x" * len(ids))
    found = as_candidates(([[5, EOS, 0], [5, 6, 7], [0, 0, 0]], [-1.0, -2.0, MISSING]), vocabulary, True)
    assert [one.cut for one in found] == [False, True]
    assert [one.truncated for one in found] == [True, True]


def test_a_line_is_cut_if_one_of_its_sentences_is():
    paragraph = Paragraph("", [Segment("", "One."), Segment(" ", "Two.")], "")
    whole, cut = Translation("Eins.", -1.0), Translation("Zw", -2.0, cut=True)
    assert join_outputs(paragraph, [whole, cut]) == Translation("Eins. Zw", -3.0, cut=True)
    assert not join_outputs(paragraph, [whole, whole]).cut


def test_lines_and_json_lines_tell_of_outputs_that_are_cut():
    cut = [Candidate("half an", -1.0, (5,), cut=True), Candidate("whole", -2.0, (5, EOS))]
    stream, notes = BytesIO(), []
    output = OutputStream(stream, "stdout")
    translate_lines(Found(cut), Lines(["one", "", "two"]), output, Report("x", notes.append), as_json=True)
    first, blank, _ = map(json.loads, stream.getvalue().splitlines())
    assert first["cut"] is True
    assert [one.get("cut") for one in first["nbest"]] == [True, None]
    assert "cut" not in blank
    assert notes == [
        "warning: 2 of 3 outputs were cut at their greatest length: give a larger extra_length, "
        "max_length_ratio or max_length_factor in --decode_hparams"
    ]
    note_faulty(0, 0, 3, notes.append)
    assert len(notes) == 1
