"""Coverage penalty: of what the search has found, outputs that attend to all of their source come first."""

import keras
import numpy as np
import pytest

from t2t_revival import DecodeHParams, Transformer, Translator
from t2t_revival.data.vocabulary.sentencepiece import EOS
from tests.support.tiny_models import TINY

LINES = ["the dog sees the house", "", "the dog", "the houses"]


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
            attended = attention[:, :-1].sum(0)  # to each token of the source but EOS
            expected = 0.5 * np.log(np.minimum(attended, 1)).sum()
            assert one.score == pytest.approx(scores[pieces(one)] + expected, abs=1e-4)
            smaller += expected < -0.01
    assert smaller


def pieces(output):
    return tuple(token.piece for token in output.details.tokens) if output.details else ()
