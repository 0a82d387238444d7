"""Pairs from Python code: each iterable is read once, and its pairs by number, in any process."""

import pickle

import pytest

from t2t_revival import PairsSource, Text2TextProblem
from t2t_revival.data import base_source
from tests.support.line_corpus import interrupt_at

PAIRS = [(f"one \u2028{n}\r", f"\ufeffeins\t{n}") for n in range(12)]


def generated():
    yield from PAIRS


def as_in_t2t():
    for source, target in PAIRS:
        yield {"inputs": source, "targets": target}


@pytest.mark.parametrize(
    "train", [PAIRS, tuple(PAIRS), generated(), generated, as_in_t2t, lambda: PAIRS, map(list, PAIRS)]
)
def test_any_iterable_is_read_by_number_and_travels(train, tmp_path, monkeypatch):
    monkeypatch.setattr(base_source, "INDEX_STEP", 5)
    made = PairsSource("p", {"dev": PAIRS[:2], "train": train}, "en", "de", tmp_path)
    assert made.splits() == ("train", "dev")
    assert (made.count("train"), made.count("dev")) == (12, 2)
    copy = pickle.loads(pickle.dumps(made))
    for source in (made, copy):
        assert list(source.pairs("train", 0, 12)) == PAIRS
        assert list(source.pairs("train", 6, 11)) == PAIRS[6:11]
        assert list(source.pairs("dev", 1, 2)) == PAIRS[1:2]
    assert (copy.name, copy.source_lang, copy.target_lang) == ("p", "en", "de")
    made.close()
    assert not any(tmp_path.iterdir())


def test_nothing_is_read_before_it_is_needed(tmp_path):
    def never():
        raise AssertionError

    made = PairsSource("p", {"train": never, "dev": never}, tmp_dir=tmp_path)
    assert made.name == "p"
    made.close()
    assert not any(tmp_path.iterdir())


class UsrCounting(Text2TextProblem):
    def make_source(self, data_source, tmp_dir):
        train = ((f"count to {n}", f"down from {n}") for n in range(60))  # once, and used up
        return PairsSource(
            "counting", {"train": train, "dev": [("count to 1", "down from 1")]}, tmp_dir=tmp_dir
        )


@pytest.mark.parametrize(
    ("stage", "error"), [("reading", KeyboardInterrupt), ("vocabulary", KeyboardInterrupt), ("", KeyError)]
)
def test_a_failure_leaves_nothing(stage, error, tmp_path):
    def failing():
        yield "a", "b"
        raise KeyError

    class UsrFailing(UsrCounting):
        def make_source(self, data_source, tmp_dir):
            return PairsSource("failing", {"train": failing, "dev": failing}, tmp_dir=tmp_dir)

    problem = UsrCounting(vocab_size=290) if stage else UsrFailing()
    with pytest.raises(error):
        problem.generate_data(tmp_path / "data", progress=interrupt_at(stage, 0))
    assert not (tmp_path / "data").exists()


@pytest.mark.usefixtures("two_processes")
def test_processes_make_shards_of_a_generator(tmp_path):
    problem = UsrCounting(vocab_size=290)
    problem.generate_data(tmp_path)
    found = sorted(problem.open(tmp_path).text("train"))
    assert found == sorted((f"count to {n}", f"down from {n}") for n in range(60))
    assert not (tmp_path / "tmp").exists()
