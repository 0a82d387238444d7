import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_revival.decoding.beam_search import BeamSearch, is_done, length_penalty
from t2t_revival.decoding.beams import SearchSettings, Sentences, search_settings
from t2t_revival.decoding.decoding_loop import drop_hidden_memory
from t2t_revival.decoding.tf_workarounds import top_tokens
from t2t_revival.model import Transformer
from tests.support.tiny_models import (
    EOS,
    PAD,
    TINY,
    all_outputs,
    compiled,
    logits_of,
    scores_of,
    tiny,
    trimmed,
)

VOCAB = 11  # one for most tests, which then share a model and its compiled search
FEW = 5  # so few that all outputs can be looked at


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.6, 0.0, 2.0, -1.0])
@pytest.mark.parametrize(("source", "extra", "beams"), [([2, 3, 1], 2, 256), ([4, 1], 2, 64)])
def test_a_beam_as_wide_as_all_prefixes_finds_the_exhaustive_optimum(source, extra, beams, alpha):
    for seed in range(3):
        model, search = tiny(FEW, seed)
        outputs = all_outputs(FEW, len(source) + extra)
        expected = scores_of(model, source, outputs, alpha)
        order = np.argsort(-expected)[:5]
        ids, scores = search([source], beams, alpha, extra, n=5)
        np.testing.assert_allclose(scores[0], expected[order], rtol=1e-4)
        assert [trimmed(row) for row in ids[0]] == [trimmed(row) for row in outputs[order]]


@pytest.mark.slow
@pytest.mark.parametrize(("beams", "window"), [(1, 0), (3, 0), (1, 4), (3, 1), (3, 4)])
def test_scores_are_those_of_the_whole_model(beams, window):
    model, search = tiny(VOCAB, seed=6, scale=0.5, hparams=TINY.replace(attention_window=window))
    source = [3, 2, 4, 1]
    ids, scores = search([source], beams, 0.6, 6, n=beams)
    np.testing.assert_allclose(scores[0], scores_of(model, source, ids[0], 0.6), rtol=1e-4)
    assert list(scores[0]) == sorted(scores[0], reverse=True)
    assert len({tuple(row) for row in ids[0].numpy()}) == beams


def reference_search(model, source, beams, alpha, limit):
    """T2T's algorithm for one sentence in plain Python, without cache, bound or batch: the best output.

    One beam is T2T's `_greedy_infer`: the best token alone is a candidate.
    """
    alive, finished = [((), 0.0)], []
    for length in range(1, limit + 1):
        rows = np.array([[*prefix, EOS] for prefix, _ in alive], np.int32)
        logits = logits_of(model, np.repeat([source], len(rows), axis=0), rows)[:, -1]
        logits -= logits.max(-1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
        candidates = [
            ((*prefix, token), total + row[token])
            for (prefix, total), row in zip(alive, logits, strict=True)
            for token in range(EOS, model.vocab_size)
        ]
        candidates = sorted(candidates, key=lambda c: -c[1])[: 2 * beams if beams > 1 else 1]
        finished += [(ids, s / ((5 + length) / 6) ** alpha) for ids, s in candidates if ids[-1] == EOS]
        finished = sorted(finished, key=lambda c: -c[1])[:beams]
        alive = [c for c in candidates if c[0][-1] != EOS][:beams]
    return (finished or [(ids, s / ((5 + limit) / 6) ** alpha) for ids, s in alive])[0]


@pytest.mark.slow
def test_each_sentence_may_have_settings_of_its_own():
    """A sentence has the same outputs among sentences of other settings as alone."""
    _, search = tiny(VOCAB, seed=6, scale=0.5)
    sources = [[3, 2, 4, 1], [5, 1], [6, 7, 8, 2, 1], [4, 8, 1]]
    rows = np.array([source + [PAD] * (5 - len(source)) for source in sources], np.int32)
    beams, alphas, extras, returned = [1, 5, 2, 3], [0.6, 0.0, 1.0, -0.5], [6, 3, 0, 4], [1, 4, 2, 1]
    settings = SearchSettings(*(tf.constant(x)[:, None] for x in (beams, alphas, extras, returned)))
    ids, scores = tf.function(search.loop, autograph=False)(rows, settings)
    assert scores.shape == (4, 4)
    for row, (source, beam, alpha, extra, n) in enumerate(
        zip(sources, beams, alphas, extras, returned, strict=True)
    ):
        alone, alone_scores = search([source], beam, alpha, extra, n)
        np.testing.assert_allclose(scores[row, :n], alone_scores[0], rtol=1e-4)
        assert [trimmed(output) for output in ids[row, :n]] == [trimmed(output) for output in alone[0]]
        assert (scores[row, n:].numpy() == -np.inf).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 4, 7])
@pytest.mark.parametrize(("beams", "alpha"), [(1, 0.0), (2, 1.0), (4, 0.6), (3, -0.5)])
def test_the_result_is_that_of_the_plain_algorithm(seed, beams, alpha):
    model, search = tiny(VOCAB, seed)
    source, extra = [2, 6, 3, 1], 3
    expected, score = reference_search(model, source, beams, alpha, len(source) + extra)
    ids, scores = search([source], beams, alpha, extra)
    assert trimmed(ids[0, 0]) == list(expected)
    assert float(scores[0, 0]) == pytest.approx(score, rel=1e-4)


@pytest.mark.slow
def test_a_sentence_does_not_depend_on_its_batch():
    _, search = tiny(VOCAB, seed=5)
    sentences = [[5, 1], [3, 4, 10, 1], [9, 9, 2, 7, 6, 5, 1], [], [8, 2, 1]]
    batch = np.zeros((len(sentences), 10), np.int32)
    for row, sentence in zip(batch, sentences, strict=True):
        row[: len(sentence)] = sentence
    ids, scores = search(batch, 3, 0.6, 4, n=3)
    for index, sentence in enumerate(sentences):
        if not sentence:
            continue
        alone, alone_scores = search([sentence], 3, 0.6, 4, n=3)
        assert [trimmed(row) for row in ids[index]] == [trimmed(row) for row in alone[0]]
        np.testing.assert_allclose(scores[index], alone_scores[0], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("window", [0, 1, 4])
def test_each_sentence_has_its_own_limit(window):
    model, search = tiny(VOCAB, seed=5, hparams=TINY.replace(attention_window=window))
    never_ends(model)
    batch = np.array([[5, 1, 0, 0, 0], [3, 4, 10, 6, 1]], np.int32)
    ids, scores = search(batch, 2, 0.6, 3)
    assert [len(trimmed(row)) for row in ids[:, 0]] == [2 + 3, 5 + 3]
    assert EOS not in ids.numpy()
    expected = [scores_of(model, [5, 1], ids[0, :, :5], 0.6), scores_of(model, batch[1], ids[1], 0.6)]
    np.testing.assert_allclose(scores, expected, rtol=1e-4)


def never_ends(model):
    """Makes EOS the least probable token: its embedding is far from everything that the decoder says."""
    norm = model.decoder.layers[-1].feed_forward_residual.norm
    norm.beta.assign(np.ones(norm.beta.shape))
    norm.gamma.assign(norm.gamma * 0.1)
    embeddings = np.array(model.target_embedding.embeddings)
    embeddings[EOS] = -10
    model.target_embedding.embeddings.assign(embeddings)


@pytest.mark.slow
def test_restricted_attention_forgets_what_has_left_the_neighbourhood():
    model, _ = tiny(VOCAB, hparams=TINY.replace(attention_window=4))
    targets = np.random.default_rng(3).integers(2, VOCAB, [1, 2, 8])
    whole = [logits_of(model, [[3, 4, 1]], targets[:, beam]) for beam in (0, 1)]
    state, last = model.start_decoding(np.array([[3, 4, 1]]), beams=2), np.zeros([1, 2], np.int32)
    for place in range(8):
        logits, state = model.decode_step(last, place, state)
        for beam in (0, 1):
            np.testing.assert_allclose(logits[:, beam], whole[beam][:, place], atol=1e-5)
        state, last = drop_hidden_memory(state), targets[:, :, place]
        memory = {x.shape[2] for x in (state.self_bias, *tf.nest.flatten(state.self_caches))}
        assert memory == {2 * min(place + 1, 3)}


@pytest.mark.slow
@pytest.mark.parametrize(("layers", "beams", "seed"), [(1, 3, 2), (2, 3, 2), (2, 8, 4)])
def test_states_of_a_recurrent_decoder_follow_their_hypotheses(layers, beams, seed):
    """Also when sentences that are done have left the batch; all outputs have the whole model's scores."""
    hparams = TINY.replace(num_hidden_layers=layers, decoder_self_attention="ssru")
    model, search = tiny(VOCAB, seed, hparams=hparams, scale=0.5)
    sources = [[2, 6, 3, 1], [5, 1, 0, 0], [7, 1, 0, 0]]
    ids, scores = search(sources, beams, 0.6, 6, n=beams)
    there = np.isfinite(scores)
    assert there.sum() > 2 * len(sources)
    for source, outputs, found, rows in zip(sources, ids.numpy(), scores.numpy(), there, strict=True):
        expected = scores_of(model, trimmed(source), outputs[rows], 0.6)
        np.testing.assert_allclose(found[rows], expected, rtol=1e-4)


@pytest.mark.parametrize("heads", [1, 2])
def test_a_decoder_of_one_layer_is_searched(heads):
    model, search = tiny(VOCAB, hparams=TINY.replace(num_hidden_layers=1, num_heads=heads))
    source = [2, 6, 3, 1]
    expected, score = reference_search(model, source, 2, 0.6, len(source) + 3)
    ids, scores = search([source, [5, 1, 0, 0]], 2, 0.6, 3)
    assert trimmed(ids[0, 0]) == list(expected)
    assert float(scores[0, 0]) == pytest.approx(score, rel=1e-4)


def test_pad_is_never_an_output():
    model, search = tiny(VOCAB, seed=1)
    embeddings = np.array(model.target_embedding.embeddings)
    norm = model.decoder.layers[-1].feed_forward_residual.norm
    norm.beta.assign(np.ones(norm.beta.shape))
    embeddings[PAD] = 10  # by far the most probable
    model.target_embedding.embeddings.assign(embeddings)
    ids, scores = search([[4, 3, 1]], 2, 0.6, 3, n=2)
    for row, score in zip(ids[0].numpy(), scores[0], strict=True):
        assert PAD not in row[: len(trimmed(row))]
        assert not row[len(trimmed(row)) :].any()
        assert np.isfinite(score)


def test_an_empty_sentence_has_no_output_at_once():
    ids, scores = tiny(VOCAB)[1](np.zeros((2, 3), np.int32), 2, 0.6, 5)
    assert ids.shape == (2, 1, 0)
    assert np.isneginf(scores).all()


def test_fewer_outputs_than_asked_for_are_marked():
    ids, scores = tiny(FEW)[1]([[2, 1]], 8, 0.6, 0, n=8)
    assert [trimmed(row) for row in ids[0]][4:] == [[]] * 4  # "1", "2 1", "3 1" and "4 1" are all there are
    assert np.isfinite(scores[0, :4]).all()
    assert np.isneginf(scores[0, 4:]).all()


@pytest.mark.parametrize("vocab_size", [7, 1024, 1025, 3000, 8191])
@pytest.mark.parametrize("k", [1, 5, 9, 300])
def test_top_tokens_are_the_largest(vocab_size, k):
    k = min(k, vocab_size)
    logits = np.random.default_rng(vocab_size + k).permuted(
        np.arange(6.0 * vocab_size, dtype=np.float32).reshape(2, 3, vocab_size), axis=2
    )
    expected = np.argsort(-logits, axis=-1)[:, :, :k]
    of_any_size = tf.function(
        top_tokens, input_signature=[tf.TensorSpec([None] * 3), tf.TensorSpec([], tf.int32)]
    )
    for function in (top_tokens, of_any_size):
        values, ids = function(tf.constant(logits), tf.constant(k))
        np.testing.assert_array_equal(ids, expected)
        np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, axis=-1))


def test_length_penalty_is_t2ts():
    """T2T 1.15 `utils/beam_search.py`: tf.pow((5. + tf.to_float(i + 1)) / 6., alpha), i counted from 0."""
    np.testing.assert_allclose(
        length_penalty(tf.constant([1, 7, 55]), 0.6), [1.0, 2**0.6, 10**0.6], rtol=1e-6
    )
    assert float(length_penalty(9, 0.0)) == 1.0


@pytest.mark.slow
def test_new_weights_and_settings_are_seen_without_a_new_trace():
    model, search = tiny(VOCAB, seed=7)
    expected = float(search([[3, 7, 5, 1]], beam_size=2, alpha=0.1, extra_length=7)[1][0, 0])
    weights = model.get_weights()
    model, search = tiny(VOCAB, seed=0)
    other = float(search([[3, 7, 5, 1]], beam_size=2, alpha=0.1, extra_length=7)[1][0, 0])
    model.set_weights(weights)
    assert float(search([[3, 7, 5, 1]], beam_size=2, alpha=0.1, extra_length=7)[1][0, 0]) == expected != other
    traces = [each.experimental_get_tracing_count() for each in search.loop._compiled.values()]
    assert max(traces) == 1


@pytest.mark.slow
def test_a_model_of_mixed_precision_is_decoded():
    _, search = tiny(VOCAB)
    expected = search([[3, 7, 5, 1]], alpha=0.0)[1]
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        mixed = Transformer(TINY, VOCAB)
    finally:
        keras.config.set_dtype_policy("float32")
    mixed.set_weights(compiled(VOCAB, TINY)[0].get_weights())
    scores = BeamSearch(mixed)([[3, 7, 5, 1]], alpha=0.0)[1]
    assert scores.dtype == tf.float32
    assert float(scores[0, 0]) == pytest.approx(float(expected[0, 0]), abs=0.2)


@pytest.mark.slow
def test_a_frozen_search_finds_the_same():
    model, search = tiny(VOCAB, seed=6)
    rows = np.array([[5, 3, 1], [7, 1, 0]])
    frozen = BeamSearch(model, constant_weights=True)
    ids, scores = search(rows, 3, 0.6, 4, n=2)
    again, same = frozen(rows, 3, 0.6, 4, n=2)
    np.testing.assert_array_equal(ids, again)
    np.testing.assert_allclose(scores, same, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [-10.0, 10.0])
def test_the_largest_exponents_give_scores(alpha):
    _, search = tiny(VOCAB, seed=1, scale=0.5)
    _, scores = search([[3, 4, 5, 1]], 2, alpha, 40, n=2)
    assert np.isfinite(scores).all()
    assert scores[0, 0] >= scores[0, 1]


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.6])
def test_a_sentence_is_done_when_its_best_hypothesis_cannot_be_worth_it(alpha, early_stopping):
    """It could end at any later position up to the maximum; with early stopping, the next one counts."""
    length, longest, alive = 4, 30, -2.0
    ends = [length + 1] if early_stopping else range(length + 1, longest + 1)
    best = max(alive / ((5 + end) / 6) ** alpha for end in ends)
    unused = dict.fromkeys(Sentences._fields)
    bounds = {"max_lengths": tf.fill([3, 1], longest), "num_outputs": tf.fill([3, 1], 2)}
    settings = search_settings(4, alpha, 20, 2)
    sentences = Sentences(**{**unused, **bounds, "settings": settings})
    finished = tf.constant([[0.0, best - 0.01], [0.0, best + 0.01], [0.0, -np.inf]])
    done = is_done(tf.fill([3, 4], alive), finished, tf.constant(length), sentences, early_stopping)
    assert done.numpy()[:, 0].tolist() == [False, True, False]


@pytest.mark.slow
def test_early_stopping_stops_earlier(monkeypatch):
    """Without a length penalty the two rules are one; with it, fewer positions are decoded."""
    model, _ = tiny(VOCAB, seed=6)
    rows = np.array([[5, 3, 9, 1], [7, 1, 0, 0]])
    positions = []
    step = Transformer.decode_step

    def counted(self, last, position, state):
        count = tf.py_function(lambda: positions.append(1) or 0, [], tf.int32)
        with tf.control_dependencies([count]):
            logits, state = step(self, tf.identity(last), position, state)
        return tf.zeros_like(logits) + tf.one_hot(1, VOCAB), state  # EOS is e times as likely as any other

    monkeypatch.setattr(Transformer, "decode_step", counted)
    exact, early = (BeamSearch(model, early_stopping=stop) for stop in (False, True))
    for alpha in (0.0, 0.6):
        found, counts = [], []
        for search in (exact, early):
            positions.clear()
            found.append(search(rows, 3, alpha, 40, n=2))
            counts.append(len(positions))
        if alpha == 0:
            np.testing.assert_array_equal(found[0][0], found[1][0])
            np.testing.assert_array_equal(found[0][1], found[1][1])
            assert counts[0] == counts[1]
        else:
            assert counts[1] < counts[0]
            assert (found[1][1].numpy() <= found[0][1].numpy() + 1e-6).all()
