"""Weights of sentences: from a column of numbers to the loss."""

import gzip

import numpy as np
import pytest

from t2t_revival import T2TError
from tests.support.data_kinds import first_batches, training_batches
from tests.support.line_corpus import translation, write_corpus


def weigh(corpus, weights):
    (corpus / "train.weights").write_text("".join(f"{weight}\n" for weight in weights))


def rows(corpus, data_dir, **settings):
    """Makes data; yields for rows of training batches the text, the weight, and the batch's target tokens."""
    problem = translation(corpus, **settings)
    problem.generate_data(data_dir)
    vocabulary = problem.open(data_dir).vocabularies.inputs
    for inputs, targets, weights in first_batches(training_batches(problem, data_dir, chunk=100), 60):
        tokens = (targets != 0).sum()
        for ids, weight in zip(inputs, np.broadcast_to(weights, len(inputs)), strict=True):
            yield vocabulary.decode(ids), weight, tokens


def number(text):
    """The number of a line in the corpus, which is a word of it."""
    return int(text.split("number ")[1].split()[0])


def test_weights_follow_their_pairs_through_cleaning_and_packed_files(corpus, tmp_path):
    lines = (corpus / "train.en").read_text().splitlines()
    lines[3] = (corpus / "train.de").read_text().splitlines()[3]  # equal sides are dropped
    lines[5] = ""
    (corpus / "train.en").write_text("\n".join([*lines, ""]))
    with gzip.open(corpus / "train.weights.gz", "wt") as file:
        file.write("".join(f"{line}\n" for line in range(300)))
    for text, weight, tokens in rows(corpus, tmp_path / "data", clean=True):
        assert number(text) not in (3, 5)
        np.testing.assert_allclose(weight, number(text) / tokens, rtol=1e-6)


def test_in_a_mixture_corpora_without_weights_have_1(corpus, tmp_path):
    weigh(corpus, [3] * 300)
    other = write_corpus(tmp_path / "other", train=40)
    made = rows(f"a={corpus}:1,b={other}:1", tmp_path / "data")
    assert {round(float(weight * tokens)) for _, weight, tokens in made} == {1, 3}


@pytest.mark.parametrize(
    ("weights", "fault"),
    [
        (["1"] * 299, r"train.weights has 299 lines, and train has 300 pairs: write one for each"),
        (["1"] * 6 + ["nan"] * 294, r"train.weights, line 7: 'nan' is not a number of 0 or more"),
        (["1"] * 299 + ["-1"], r"train.weights, line 300: '-1' is not a number"),
        (["heavy"] * 300, r"train.weights, line 1: 'heavy' is not a number"),
        (["0"] * 300, r"train.weights: all weights are 0, so that nothing would be learned"),
    ],
)
def test_faulty_weights_are_found_before_anything_is_made(corpus, tmp_path, weights, fault):
    weigh(corpus, weights)
    with pytest.raises(T2TError, match=fault):
        translation(corpus).generate_data(tmp_path / "data")
    assert not (tmp_path / "data").exists()
