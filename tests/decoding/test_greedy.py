"""Greedy decoding: a beam of one, by the search itself and by the growth that is made for it."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival.decoding.beam_search import grow, grow_greedy
from t2t_revival.decoding.beams import Beams, Sentences, search_settings
from tests.support.tiny_models import EOS, PAD, TINY, logits_of, tiny, trimmed

VOCAB = 11


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pos", "sequence", "seed"), [("sinusoid", ("none", "dan"), 2), ("emb", ("n", "da"), 5)]
)
def test_greedy_is_the_whole_models_argmax_step_by_step(pos, sequence, seed):
    before, after = sequence
    hparams = TINY.replace(pos=pos, layer_preprocess_sequence=before, layer_postprocess_sequence=after)
    model, search = tiny(VOCAB, seed, hparams)
    source, extra = [3, 9, 4, 1], 6
    output = []
    while len(output) < len(source) + extra and EOS not in output:
        logits = logits_of(model, [source], [[*output, 0]])[0, -1]
        logits[PAD] = -np.inf
        output.append(int(logits.argmax()))
    ids, _ = search([source], 1, 0.6, extra)
    assert trimmed(ids[0, 0]) == output


@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_greedy_growth_is_that_of_a_beam_of_one(seed, is_masked):
    """Beside `grow`, for sentences that go on, end, are at their maximum length, are done, and prefer PAD."""
    random = np.random.default_rng(seed)
    batch, length, vocab = 12, 3, 6
    logits = random.normal(size=(batch, 1, vocab)).astype(np.float32)
    logits[0, 0, PAD], logits[1, 0, EOS] = 9, 9
    allowed = random.random((batch, 1, vocab)) < 0.7 if is_masked else None
    done = np.arange(batch)[:, None] >= batch - 4
    beams = Beams(
        last_ids=tf.zeros([batch, 1], tf.int32),
        alive_seq=tf.constant(random.integers(2, vocab, (batch, 1, length), np.int32)),
        alive_log_probs=tf.where(done, -np.inf, tf.constant(-random.random((batch, 1)), tf.float32)),
        finished_seq=tf.where(done[:, :, None], [[[3, 1, 0]]], tf.zeros([batch, 1, length], tf.int32)),
        finished_scores=tf.where(done, -0.5, -np.inf),
        self_bias=(),
        self_caches=(),
        words_emitted=(),
    )
    sentences = Sentences(
        indices=None,
        max_lengths=tf.constant(random.integers(length + 1, length + 3, (batch, 1), np.int32)),
        min_lengths=(),
        num_outputs=tf.ones([batch, 1], tf.int32),
        settings=search_settings(1, 0.6, 50, 1),
        encoder_caches=(),
        encoder_bias=(),
        source_words=(),
        constraint_inputs=(),
        shortlisted=(),
        draws=(),
    )
    expected = grow(beams, logits, sentences, allowed)
    found = grow_greedy(beams, logits, sentences, allowed)
    for name in ("alive_log_probs", "finished_scores"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6)
    finished = expected.finished_scores[:, 0] > -np.inf
    np.testing.assert_array_equal(found.finished_seq[finished], expected.finished_seq[finished])
    alive = expected.alive_log_probs[:, 0] > -np.inf
    assert 0 < tf.math.count_nonzero(alive) < batch - 4
    for name in ("last_ids", "alive_seq"):
        np.testing.assert_array_equal(getattr(found, name)[alive], getattr(expected, name)[alive])
