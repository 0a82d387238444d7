"""Details of outputs by an exported model: those that the decoder has, from strings alone."""

import dataclasses

import numpy as np
import pytest

from t2t_revival import DecodeHParams, T2TError, Translator
from t2t_revival.decoding.lines.calls import run
from t2t_revival.serving.details import query_details
from t2t_revival.serving.served_translator import ServedTranslator, parse_options
from tests.support.exported import HEADS

OPTIONS = DecodeHParams.parse(
    "beam_size=2,extra_length=3,alignments=pharaoh,token_scores=True,alternatives=2"
)
LINES = ["the dog sees the house", "", "der Hund  sees 3 houses .", "the cat"]


def details_of(model, pairs, *args, **more):
    return run(query_details(model.where, pairs, *args, **more), model.predict)


@pytest.fixture(scope="module")
def detailed(translator):
    return Translator(translator.model, translator.vocabulary, OPTIONS, max_length=30, alignment_heads=HEADS)


def same(found, expected):
    """Checks that details agree, numbers nearly so."""
    assert found.source_words == expected.source_words
    assert found.links == expected.links
    for name in ("words", "tokens"):
        for one, other in zip(getattr(found, name), getattr(expected, name), strict=True):
            numbers = "log_prob" if name == "words" else "alternatives", "log_prob"
            assert one._replace(**dict.fromkeys(numbers)) == other._replace(**dict.fromkeys(numbers))
            np.testing.assert_allclose(one.log_prob, other.log_prob, rtol=1e-4, atol=1e-5)
    for one, other in zip(found.tokens, expected.tokens, strict=True):
        assert [each.piece for each in one.alternatives] == [each.piece for each in other.alternatives]
        np.testing.assert_allclose(
            [each.log_prob for each in one.alternatives],
            [each.log_prob for each in other.alternatives],
            rtol=1e-4,
        )


@pytest.mark.slow
def test_they_are_the_decoders(served, detailed):
    pairs = [(line, output) for line in LINES if line for output in ("the houses", "der Hund, the ½ cat")]
    scores = detailed.score(pairs)
    found = details_of(served, pairs, alternatives=2, aligns=True)
    assert any(details.links for details in found)
    for details, score in zip(found, scores, strict=True):
        same(details, score.details)
    for value in (-1, 101):
        with pytest.raises(T2TError, match="alternatives must be between 0 and 100"):
            details_of(served, pairs, value)


@pytest.mark.slow
def test_served_outputs_have_them(served, detailed):
    found = ServedTranslator(served, OPTIONS).nbest(LINES)
    expected = detailed.nbest(LINES)
    for (output, *_), (other, *_) in zip(found, expected, strict=True):
        assert output.text == other.text
        ids = detailed.vocabulary.encode(other.text)
        if other.details is None:
            assert output.details is None
        elif [detailed.vocabulary.pieces[token] for token in ids] == [
            token.piece for token in other.details.tokens[:-1]
        ]:
            same(output.details, other.details)


@pytest.mark.slow
def test_lines_do_not_depend_on_their_batch(served):
    pairs = [
        ("the dog", "the house"),
        ("the cat sees the dog .", "der Hund sees 3 houses"),
        ("", "x"),
        ("the", ""),
    ]
    together = details_of(served, pairs, aligns=True)
    for pair, details in zip(pairs, together, strict=True):
        (alone,) = details_of(served, [pair], aligns=True)
        same(details, alone)
    assert details_of(served, []) == []


class Without:
    """An exported model whose answers lack some columns."""

    where = "server"

    def __init__(self, served, *names):
        self._served, self._names = served, names

    def predict(self, signature, inputs):
        answer = self._served.predict(signature, inputs)
        return {name: values for name, values in answer.items() if name not in self._names}


@pytest.mark.slow
def test_a_model_that_does_not_tell_all(served):
    pairs, without = [("the dog", "the houses")], Without(served, "attention", "alignment_rule")
    (details,) = details_of(without, pairs)
    assert details.links == ()
    with pytest.raises(T2TError, match="has no alignment heads: choose them with t2t-align --choose_heads"):
        details_of(without, pairs, aligns=True)
    with pytest.raises(T2TError, match="server: the response has no tokens: export the model again"):
        details_of(Without(served, "tokens"), pairs)


def test_options_of_requests():
    options, as_exported = parse_options("alignments=pharaoh,alternatives=2", None)
    assert options == dataclasses.replace(DecodeHParams(), alignments="pharaoh", alternatives=2)
    assert as_exported
    assert not parse_options("alpha=0.5", None)[1]
