"""Details of outputs by an exported model: those that the decoder has, from strings alone."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from t2t_revival.serving.details import query_details
from t2t_revival.serving.export import export
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.module import ServingModule
from t2t_revival.serving.served_translator import ServedOptions, ServedTranslator
from t2t_revival.serving.signatures import SCORE

HEADS = AlignmentHeads(1, (2,), shifted=True, share=0.6, null=True)
OPTIONS = DecodeHParams.parse(
    "beam_size=2,extra_length=5,alignments=pharaoh,token_scores=True,alternatives=2"
)
LINES = ["the dog sees the house", "", "der Hund  sees 3 houses .", "the cat"]


@pytest.fixture(scope="module")
def translator(make_translator):
    return make_translator(DecodeHParams(beam_size=2, extra_length=5), max_length=30)


@pytest.fixture(scope="module")
def detailed(translator):
    return Translator(translator.model, translator.vocabulary, OPTIONS, max_length=30, alignment_heads=HEADS)


class ModuleModel:
    """A module in the place of an exported model."""

    where = "module"

    def __init__(self, module):
        self.module = module

    def predict(self, signature, inputs):
        types = {"alternatives": tf.int32, "beam_size": tf.int32, "extra_length": tf.int32, "n": tf.int32}
        given = {name: tf.constant(value, types.get(name)) for name, value in inputs.items()}
        found = self.module.signatures[signature](**given)
        return {name: value.numpy().tolist() for name, value in found.items()}


@pytest.fixture(scope="module")
def model(translator):
    return ModuleModel(ServingModule(translator, heads=HEADS))


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
def test_they_are_the_decoders(model, detailed):
    pairs = [(line, output) for line in LINES if line for output in ("the houses", "der Hund, the ½ cat")]
    scores = detailed.score(pairs)
    found = query_details(model, pairs, alternatives=2, aligns=True)
    assert any(details.links for details in found)
    for details, score in zip(found, scores, strict=True):
        same(details, score.details)


@pytest.mark.slow
def test_served_outputs_have_them(model, detailed):
    served = ServedTranslator(model, ServedOptions(detailed=OPTIONS)).nbest(LINES)
    expected = detailed.nbest(LINES)
    for (output, *_), (other, *_) in zip(served, expected, strict=True):
        assert output.text == other.text
        ids = detailed.vocabulary.encode(other.text)
        if other.details is None:
            assert output.details is None
        elif [detailed.vocabulary.pieces[token] for token in ids] == [
            token.piece for token in other.details.tokens[:-1]
        ]:
            same(output.details, other.details)


@pytest.mark.slow
def test_lines_do_not_depend_on_their_batch(model):
    pairs = [
        ("the dog", "the house"),
        ("the cat sees the dog .", "der Hund sees 3 houses"),
        ("", "x"),
        ("the", ""),
    ]
    together = query_details(model, pairs, aligns=True)
    for pair, details in zip(pairs, together, strict=True):
        (alone,) = query_details(model, [pair], aligns=True)
        same(details, alone)
    assert query_details(model, []) == []


@pytest.mark.slow
def test_an_export_has_the_signature(translator, tmp_path, detailed):
    folder = export(translator, tmp_path / "export", "m", heads=HEADS)
    served = FolderModel(folder)
    pairs = [("the dog", "the houses")]
    same(query_details(served, pairs, 2, aligns=True)[0], detailed.score(pairs)[0].details)
    for value in (-1, 101):
        with pytest.raises(T2TError, match="alternatives must be between 0 and 100"):
            query_details(served, pairs, value)


@pytest.mark.slow
def test_without_heads_there_is_no_alignment(translator):
    model = ModuleModel(ServingModule(translator))
    (details,) = query_details(model, [("the dog", "the houses")])
    assert details.links == ()
    with pytest.raises(
        T2TError,
        match="has no alignment heads: choose them with t2t-align --choose_heads, and export it again",
    ):
        query_details(model, [("the dog", "the houses")], aligns=True)


def test_a_model_that_does_not_tell():
    class Silent:
        where = "server"

        def predict(self, signature, inputs):
            assert signature == SCORE
            return {"outputs": [["x"]]}

    with pytest.raises(T2TError, match="server: the response has no tokens: export the model again"):
        query_details(Silent(), [("a", "b")])


def test_options_of_requests():
    options = ServedOptions.parse("alignments=pharaoh,alternatives=2", None)
    assert options.detailed == dataclasses.replace(DecodeHParams(), alignments="pharaoh", alternatives=2)
    assert options.search is None
    assert ServedOptions.parse("alpha=0.5", None).detailed is None
