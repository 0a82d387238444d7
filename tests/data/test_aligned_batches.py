"""Word alignments from a corpus to the batches that a training reads."""

import re
import sys

import numpy as np
import pytest

from t2t_revival import HParams, T2TError, registry
from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.data.word_alignment import words_of
from tests.support.data_kinds import training_batches
from tests.support.line_corpus import translation

GUIDED = HParams(guided_alignment_weight=0.1, batch_size=256, max_length=64)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Lines whose second side has the words of the first in reverse; word 3 has no link."""
    folder = tmp_path_factory.mktemp("aligned")
    rng = np.random.default_rng(1)
    for split, count in (("train", 120), ("dev", 4)):
        rows = [["".join(rng.choice([*"aeiou"], 3)) for _ in range(rng.integers(1, 7))] for _ in range(count)]
        rows[1] = rows[0]  # which cleaning drops
        links = [
            " ".join(f"{place}-{len(row) - 1 - place}" for place in range(len(row)) if place != 3)
            for row in rows
        ]
        for name, lines in (
            ("en", [" ".join(row) for row in rows]),
            ("de", [" ".join(row[::-1]).upper() for row in rows]),
            *([("align", links)] if split == "train" else []),
        ):
            (folder / f"{split}.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def links_of_batch(inputs, targets, shares, vocabulary):
    """Yields for each row its words, and pairs of words with the share of the first in the second."""
    for source, target, weights in zip(inputs, targets, shares, strict=True):
        sides = [[token for token in side.tolist() if token not in (0, EOS)] for side in (source, target)]
        if not sides[0]:
            continue
        texts = [vocabulary.decode(side) for side in sides]
        words = [words_of(vocabulary, side, text) for side, text in zip(sides, texts, strict=True)]
        found = {
            (words[0][s] if s < len(words[0]) else "end", words[1][t])
            for t, s in zip(*np.nonzero(weights), strict=True)
            if t < len(words[1])
        }
        yield [text.split() for text in texts], found, weights


@pytest.mark.slow
@pytest.mark.parametrize("name", ["translate_ende", "translate_ende_rev"])
@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("pad_to_bucket", [False, True])
def test_linked_words_are_those_of_the_file(corpus, tmp_path, name, clean, pad_to_bucket):
    problem = registry.problem(name, data_source=str(corpus), vocab_size=300, clean=clean)
    problem.generate_data(tmp_path)
    batches = training_batches(problem, tmp_path, GUIDED, replicas=2, pad_to_bucket=pad_to_bucket)
    vocabulary = problem.vocabulary(tmp_path)
    rows = 0
    for x, _, _ in batches.dataset().take(6):
        given = (x[side].numpy() for side in ("inputs", "targets", "alignments"))
        for (source, target), found, weights in links_of_batch(*given, vocabulary):
            assert [word.lower() for word in source] == [word.lower() for word in target[::-1]]
            unlinked = 3 if name == "translate_ende" else len(source) - 4
            expected = {(place, len(source) - 1 - place) for place in range(len(source)) if place != unlinked}
            if name == "translate_ende" and len(source) > 3:
                expected.add(("end", len(source) - 4))
            assert found == expected
            shares = 1 / np.maximum(np.count_nonzero(weights, axis=-1), 1)
            np.testing.assert_allclose(weights, np.where(weights, shares[:, None], 0), rtol=1e-6)
            rows += 1
    assert rows > 20


@pytest.fixture
def plain(corpus, tmp_path):
    """The corpus without alignments."""
    folder = tmp_path / "plain"
    folder.mkdir()
    for file in corpus.glob("*.??"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_data_without_alignments_names_the_flag(plain, tmp_path):
    problem = translation(plain, vocab_size=300)
    problem.generate_data(tmp_path / "data")
    with pytest.raises(T2TError, match=r"lacks: make it in another --data_dir, with --make_alignments"):
        training_batches(problem, tmp_path / "data", GUIDED)


def test_without_eflomal_nothing_is_begun(plain, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "eflomal", None)
    with pytest.raises(T2TError, match=re.escape("pip install eflomal")):
        translation(plain, vocab_size=300, make_alignments=True).generate_data(tmp_path / "data")
    translation(plain, vocab_size=300).generate_data(tmp_path / "data")
