"""Coverage penalty: of what the search has found, outputs that attend to all of their source come first."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.decoding.coverage import CoveragePenalty, penalty
from t2t_revival.decoding.ctranslate2_engine import check_usable
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.postprocessor import Decoded
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from t2t_revival.model import Transformer
from tests.support.tiny_models import TINY

LINES = ["the dog sees the house", "", "the dog", "the houses"]


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5))
def test_penalty_by_hand(attention):
    expected = sum(np.log(min(max(sum(column), 1e-9), 1.0)) for column in zip(*attention, strict=True))
    assert penalty(np.array(attention)) == pytest.approx(expected)
    assert penalty(np.array(attention)) <= 0


def test_outputs_are_sorted_again():
    weights = {7: [[0.5, 0.1, 0.4]] * 2, 8: [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05]]}

    def attend(sources, targets):
        assert sources.tolist() == [[4, 5, EOS]] * 2
        return np.array([weights[row[0]] for row in targets.tolist()])

    decoded = Decoded("a b", [4, 5, EOS], [[7, EOS, 0], [8, EOS, 0], [0, 0, 0]], [-1.0, -1.2, -np.inf])
    (found,) = CoveragePenalty(attend, 1.0)([decoded])
    assert found.ids == [[8, EOS, 0], [7, EOS, 0], [0, 0, 0]]
    expected = [-1.2 + np.log(0.95) * 2, -1.0 + np.log(0.2), -np.inf]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-5)
    nothing = decoded._replace(scores=[-np.inf] * 3)
    assert CoveragePenalty(attend, 1.0)([nothing]) == [nothing]


def test_scores_are_the_searchs_and_the_penalty(vocabulary):
    keras.utils.set_random_seed(2)
    model = Transformer(TINY, vocabulary.size)
    model.target_embedding.embeddings.assign(model.target_embedding.embeddings * 3)
    how = "beam_size=4,extra_length=0,token_scores=True"
    plain, covered = (
        Translator(model, vocabulary, DecodeHParams.parse(f"{how},{more}"))
        for more in ("alpha=0.6", "coverage_penalty=0.5")
    )
    found, best = covered.nbest(LINES, n=4), covered.nbest(LINES)
    assert [outputs[0].text for outputs in found] == [outputs[0].text for outputs in best]
    smaller = 0
    for line, outputs, others in zip(LINES, found, plain.nbest(LINES, n=4), strict=True):
        assert [one.score for one in outputs] == sorted((one.score for one in outputs), reverse=True)
        scores = {pieces(one): one.score for one in others}
        assert {*map(pieces, outputs)} == {*scores}
        for one in outputs if line else ():
            ids = [EOS if piece == "<EOS>" else vocabulary.pieces.index(piece) for piece in pieces(one)]
            inputs = {"inputs": np.array([[*vocabulary.encode(line), EOS]]), "targets": np.array([ids])}
            attention = np.asarray(model.attention_weights(inputs).encoder_decoder)[0, -1].mean(0)
            expected = 0.5 * penalty(attention[:, :-1])
            assert one.score == pytest.approx(scores[pieces(one)] + expected, abs=1e-4)
            smaller += expected < -0.01
    assert smaller


def pieces(output):
    return tuple(token.piece for token in output.details.tokens) if output.details else ()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ("coverage_penalty=-1", "coverage_penalty=-1.0 must be between 0 and 100"),
        ("coverage_penalty=nan", "coverage_penalty=nan must be between 0 and 100"),
        ("coverage_penalty=1,beam_size=1", "coverage_penalty needs a beam"),
        ("coverage_penalty=1,mbr=chrf", "coverage_penalty cannot be combined with mbr"),
        ("coverage_penalty=1,constrained=True", "coverage_penalty cannot be combined with constrained=True"),
        ("coverage_penalty=1,sampling_method=random", "cannot be combined with sampling_method=random"),
    ],
)
def test_invalid_options(options, fault):
    with pytest.raises(T2TError, match=fault):
        DecodeHParams.parse(options)


def test_other_engines_and_exports_refuse():
    options = DecodeHParams(coverage_penalty=0.2)
    with pytest.raises(T2TError, match="CTranslate2 does not support coverage_penalty"):
        check_usable(TINY, options, "float32")
    with pytest.raises(T2TError, match="coverage_penalty is for t2t-decoder"):
        options.check_served()
