"""Samples of an exported model are drawn from the model's distribution, each line's by its own options."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import DecodeHParams, T2TError, Translator
from t2t_revival.decoding.search.sampling import uniform_in_graph
from t2t_revival.serving.signatures import WITH_SAMPLING, option_inputs
from tests.support.exported import asking

LINE = "the cat"
SAMPLES = 100


def draw(served, lines, n=1, temperature=1.0, k=-1, seed=0):
    given = {"sampling_temp": temperature, "sampling_keep_top_k": k, "random_seed": seed, "n": n}
    options = {name: np.ravel(value).tolist() for name, value in given.items()}
    found = served.predict(WITH_SAMPLING, {"inputs": lines, "alpha": [0.6], "extra_length": [2], **options})
    return found["outputs"], np.array(found["scores"], np.float32)


def test_numbers_of_a_sample_depend_on_its_seed_and_place_alone():
    few = uniform_in_graph(tf.constant([[3], [4]]), 2, 2).numpy()
    many = uniform_in_graph(tf.constant([[7], [4], [3]]), 500, 3).numpy()
    np.testing.assert_array_equal(few, many[[2, 1], :2, :2])
    assert 0 <= many.min() < many.max() < 1
    assert abs(many.mean() - 0.5) < 0.03
    assert abs(np.corrcoef(many[0, :, 0], many[0, :, 1])[0, 1]) < 0.15


@pytest.mark.slow
def test_a_line_has_the_samples_that_it_has_alone(served):
    lines = [LINE, "", "der Hund sees 3 houses .", LINE]
    settings = {"temperature": [1.0, 1.0, 0.5, 2.0], "k": [-1, 5, 3, 10], "seed": [1, 2, 3, 1]}
    together, scores = draw(served, lines, [3, 1, 2, 3], **settings)
    for row, line in enumerate(lines):
        n = [3, 1, 2, 3][row]
        alone, alone_scores = draw(served, [line], n, **{key: value[row] for key, value in settings.items()})
        assert together[row][:n] == alone[0]
        np.testing.assert_allclose(scores[row, :n], alone_scores[0], rtol=1e-5)
    assert together[0] != together[3], "another temperature"
    assert together[1][0] == b""
    assert scores[1, 0] == 0


@pytest.mark.slow
def test_seeds_and_samples_differ(served):
    one, other = draw(served, [LINE, LINE], 8, seed=[1, 2])[0]
    assert len(set(one)) > 4
    assert one != other
    assert draw(served, [LINE], 8, seed=1)[0] == [one]


@pytest.mark.slow
@pytest.mark.parametrize("setting", [{"k": 1}, {"temperature": 0.001}])
def test_the_most_probable_token_each_time_is_greedy_search(translator, served, setting):
    greedy = Translator(
        translator.model, translator.vocabulary, DecodeHParams(beam_size=1, extra_length=2), 30
    )
    outputs, scores = draw(served, [LINE], 2, **setting)
    (expected,) = greedy.nbest([LINE])[0]
    assert [text.decode() for text in outputs[0]] == [expected.text] * 2
    np.testing.assert_allclose(scores[0], expected.score, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0.0}, "sampling_temp must be between 0.001 and 1000"),
        ({"k": 0}, "sampling_keep_top_k must be -1 or at least 1"),
        ({"k": -2}, "sampling_keep_top_k must be -1 or at least 1"),
        ({"seed": -1}, "random_seed must be between 0 and"),
        ({"n": 101}, "n must be between 1 and 100"),
        ({"n": 0}, "n must be between 1 and 100"),
        ({"temperature": [1.0, 1.0]}, "sampling_temp must be a scalar, or have one value for each line"),
    ],
)
def test_options_out_of_bounds_are_invalid_arguments(served, changes, message):
    with pytest.raises(T2TError, match=message):
        draw(served, [LINE] * 3, **changes)


@pytest.mark.slow
def test_the_client_and_python_ask_for_samples(served):
    options = DecodeHParams(
        beam_size=3, extra_length=2, return_beams=True, sampling_method="random", random_seed=4
    )
    found = served.predict(WITH_SAMPLING, {"inputs": [LINE], **option_inputs(options, 1, 3)})
    assert found["outputs"] == draw(served, [LINE], 3, seed=4)[0]
    asked = "sampling_method=random,random_seed=4,beam_size=3,return_beams=True,extra_length=2"
    (outputs,) = asking(served, asked).nbest([LINE])
    assert [output.text.encode() for output in outputs] == found["outputs"][0]
