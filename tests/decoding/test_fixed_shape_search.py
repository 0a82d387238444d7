"""The search in fixed shapes finds the outputs of `BeamSearch`; here TensorFlow computes both."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.decoding.fixed_shape_search import Settings, gather, search
from t2t_revival.model import Transformer
from tests.support.tiny_models import PAD, TINY, tiny

VOCAB, WIDTH = 11, 8
SOURCES = np.zeros((6, WIDTH), np.int32)  # the last one has no source
for row, ids in enumerate(([3, 2, 4, 1], [5, 1], [1], [9, 8, 7, 6, 5, 4, 3, 1], [2, 2, 10, 6, 1])):
    SOURCES[row, : len(ids)] = ids


def fixed_search(model, beam_size, n, early_stopping=False, extra_length=5):
    """The search as a graph, which is called with alpha; returns ids, cut to the length, and scores."""

    @tf.function(autograph=False)
    def graph(alpha):
        settings = Settings(beam_size, n, early_stopping, alpha, extra_length)
        return search(model, SOURCES, settings, WIDTH + extra_length)

    def found(alpha):
        seq, scores, length = (np.asarray(x) for x in graph(tf.constant(alpha)))
        assert not seq[:, :, length:].any()
        return seq[:, :, :length], scores

    return found


def assert_equal(found, expected):
    ids, scores = (np.asarray(x) for x in expected)
    np.testing.assert_array_equal(found[0], ids)
    np.testing.assert_allclose(found[1], scores, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("beam_size", "n"), [(1, 1), (4, 4), (3, 2)])
def test_outputs_are_those_of_the_search_whose_shapes_change(beam_size, n):
    find = fixed_search(tiny(VOCAB)[0], beam_size, n)
    for seed, scale in ((0, 3.0), (1, 0.5)):
        _, expected = tiny(VOCAB, seed, scale=scale)  # the same model with other weights
        for alpha in (0.0, 0.6, 1.5, -0.5):
            assert_equal(find(alpha), expected(SOURCES, beam_size, alpha, 5, n))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"attention_window": 3},
        {"decoder_self_attention": "ssru"},
        {"deterministic_attention": True},
        {"pos": "emb", "attention_key_channels": 4, "attention_value_channels": 12},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_models_with_other_layers(changes):
    model, expected = tiny(VOCAB, seed=2, hparams=TINY.replace(**changes))
    if model.deterministic_attention:
        flags = np.zeros((VOCAB, 3), np.float32)
        flags[[1, 5], 0] = flags[7, 1] = flags[[2, 9], 2] = 1
        model.deterministic_attention.token_flags.assign(flags)
    assert_equal(fixed_search(model, 3, 2)(0.6), expected(SOURCES, 3, 0.6, 5, 2))


@pytest.mark.slow
def test_early_stopping():
    model, _ = tiny(VOCAB, seed=4, scale=0.5)
    expected = BeamSearch(model, early_stopping=True)
    assert_equal(fixed_search(model, 4, 1, True, 30)(1.5), expected(SOURCES, 4, 1.5, 30))


@pytest.mark.slow
def test_no_room_and_a_vocabulary_smaller_than_the_beam():
    model, expected = tiny(5, seed=3)
    sources = np.minimum(SOURCES, 4)
    seq, scores, length = search(model, sources, Settings(8, 8, False, 0.6, 0), WIDTH)
    ids, expected_scores = (np.asarray(x) for x in expected(sources, 8, 0.6, 0, 8))
    np.testing.assert_array_equal(np.asarray(seq)[:, :, : int(length)], ids)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-5)
    lengths = (ids != PAD).sum(2)
    assert (lengths <= (sources != PAD).sum(1, keepdims=True)).all()


def test_gather():
    x = np.arange(24).reshape(2, 3, 4)
    places = np.array([[2, 2, 0, 1], [0, 1, 1, 0]])
    np.testing.assert_array_equal(gather(x, places), [x[row, places[row]] for row in range(2)])


def test_caches_of_fixed_size_keep_their_shapes():
    model = Transformer(TINY, VOCAB)
    state = model.start_decoding(SOURCES, beams=2, positions=3)
    for position in range(3):
        _, after = model.decode_step(np.full((6, 2), 3), position, state)
        tf.nest.map_structure(lambda x, y: x.shape.assert_is_compatible_with(y.shape), after, state)
        assert [int(cache.place) for cache in after.self_caches] == [2 * position + 2] * 2
        seen = (np.asarray(after.self_bias) == 0).sum(2)
        np.testing.assert_array_equal(seen, position + 1)  # a beam continues itself where none is moved
        state = after
