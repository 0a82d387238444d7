"""Weights of sentences: from a column of numbers to the loss."""

import gzip

import numpy as np
import pytest

from t2t_revival import registry
from t2t_revival.data.batching import TrainingBatches
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from tests.support.line_corpus import write_corpus

HPARAMS = HParams(batch_size=256, max_length=64)


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus")


def weigh(corpus, weights):
    (corpus / "train.weights").write_text("".join(f"{weight}\n" for weight in weights))


def shards(corpus, data_dir, **arguments):
    problem = registry.problem("translate_ende", data_source=str(corpus), vocab_size=330, **arguments)
    problem.generate_data(data_dir)
    return problem.shards("train", data_dir), problem.vocabulary(data_dir)


def rows(shards, count=30):
    """Yields the ids of the inputs of each row, its token's weight, and the number of target tokens."""
    for inputs, targets, weights in TrainingBatches(shards, HPARAMS, chunk=100).dataset().take(count):
        tokens = (targets.numpy() != 0).sum()
        for ids, row in zip(inputs["inputs"].numpy(), weights.numpy(), strict=True):
            yield ids[ids != 0].tolist(), row[0], tokens


def test_a_weight_multiplies_the_loss_of_its_pair(corpus, tmp_path):
    """The pairs of the corpus have numbers in them, by which weights are told."""
    weigh(corpus, [number / 4 for number in range(300)])
    made, vocabulary = shards(corpus, tmp_path / "data")
    assert made.weighted
    seen = set()
    for ids, weight, tokens in rows(made):
        number = int(vocabulary.decode(ids).split("number ")[1].split()[0])
        np.testing.assert_allclose(weight, number / 4 / tokens, rtol=1e-6)
        seen.add(number)
    assert len(seen) > 100


def test_equal_weights_of_1_are_as_none(corpus, tmp_path):
    plain, _ = shards(corpus, tmp_path / "plain")
    assert not plain.weighted
    weigh(corpus, [1] * 300)
    weighted, _ = shards(corpus, tmp_path / "data")
    assert list(rows(plain)) == list(rows(weighted))


def test_weights_follow_their_pairs_through_cleaning_and_packed_files(corpus, tmp_path):
    lines = (corpus / "train.en").read_text().splitlines()
    lines[3] = (corpus / "train.de").read_text().splitlines()[3]  # equal sides are dropped
    lines[5] = ""
    (corpus / "train.en").write_text("\n".join([*lines, ""]))
    with gzip.open(corpus / "train.weights.gz", "wt") as file:
        file.write("".join(f"{number}\n" for number in range(300)))
    made, vocabulary = shards(corpus, tmp_path / "data", clean=True)
    for ids, weight, tokens in rows(made):
        number = int(vocabulary.decode(ids).split("number ")[1].split()[0])
        assert number not in (3, 5)
        np.testing.assert_allclose(weight, number / tokens, rtol=1e-6)


def test_in_a_mixture_corpora_without_weights_have_1(corpus, tmp_path):
    weigh(corpus, [3] * 300)
    other = write_corpus(tmp_path / "other", train=40)
    made, _ = shards(f"a={corpus}:1,b={other}:1", tmp_path / "data")
    assert made.weighted
    assert {round(float(weight * tokens)) for _, weight, tokens in rows(made)} == {1, 3}


@pytest.mark.parametrize(
    ("weights", "fault"),
    [
        (["1"] * 299, r"train.weights has 299 lines, and train has 300 pairs: write one for each"),
        (["1"] * 6 + ["nan"] * 294, r"train.weights, line 7: 'nan' is not a number of 0 or more"),
        (["1"] * 299 + ["-1"], r"train.weights, line 300: '-1' is not a number"),
        (["inf"] * 300, r"train.weights, line 1: 'inf' is not a number"),
        (["heavy"] * 300, r"train.weights, line 1: 'heavy' is not a number"),
        (["0"] * 300, r"train.weights: all weights are 0, so that nothing would be learned"),
    ],
)
def test_faulty_weights_are_found_before_anything_is_made(corpus, tmp_path, weights, fault):
    weigh(corpus, weights)
    with pytest.raises(T2TError, match=fault):
        shards(corpus, tmp_path / "data")
    assert not (tmp_path / "data").exists()
