"""The commonest faults of a user's source, each in one line that names the class."""

import pytest

from t2t_revival import PairsSource, Source, T2TError, Text2TextProblem
from t2t_revival.data.config import DataConfig


class Numbers(Source):
    """Source with the required methods only."""

    def splits(self):
        return ("train", "dev")

    def count(self, split):
        return 40

    def pairs(self, split, start, stop):
        return [(f"count to {n}", f"down from {n}") for n in range(start, stop)]


def problem(source, **attributes):
    """Returns a problem with that source and these attributes."""
    made = {"make_source": lambda self, data_source, tmp_dir: source, "large_vocab_size": 280, **attributes}
    return type("UsrNumbers", (Text2TextProblem,), made)(data_source="numbers")


def changed(**attributes):
    return type("Changed", (Numbers,), attributes)()


def returning(value):
    return lambda self, *arguments: value


def test_three_methods_are_enough(tmp_path):
    metadata = problem(Numbers()).generate_data(tmp_path)
    assert (metadata.source, metadata.source_lang, metadata.target_lang) == ("numbers", "inputs", "targets")
    assert metadata.splits["train"].examples == metadata.splits["dev"].examples == 40
    assert problem(Numbers()).generate_data(tmp_path) == metadata
    other = problem(Numbers())
    other.config = DataConfig("others")
    with pytest.raises(T2TError, match="made with data_source=numbers, not others"):
        other.generate_data(tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (changed(pairs=returning([])), "pairs yields only 0 of 1 pairs of train"),
        (changed(pairs=returning([("a", "b")] * 40)), "pairs yields more than 1 pairs of train"),
        (changed(pairs=returning(["ab"])), r"pairs: pair 1 of train is 'ab', not a pair of strings"),
        (changed(pairs=returning([("a", b"b")])), r"pairs: pair 1 of train is \('a', b'b'\), not a pair"),
        (changed(pairs=returning([("a\n", "b")])), "pairs: pair 1 of train has a line feed in it"),
    ],
)
def test_a_wrong_source_is_named(source, message, tmp_path):
    with pytest.raises(T2TError, match=rf"^Changed\.{message}"):
        problem(source).generate_data(tmp_path / "new" / "data")
    assert not (tmp_path / "new").exists(), "nothing is left behind"


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"train": [], "dev": []}, "PairsSource 'p': no pairs of train"),
        ({"train": iter(()), "dev": []}, "PairsSource 'p': no pairs of train"),
        ({"train": [("a", "b")]}, "p: no dev split, only train"),
        ({"train": [("a", "b")], "dev": ["ab"]}, "PairsSource 'p': pair 1 of dev is 'ab', not a pair"),
    ],
)
def test_wrong_iterables_are_named(splits, message, tmp_path):
    def make_source(self, data_source, tmp_dir):
        return PairsSource("p", splits, tmp_dir=tmp_dir)

    with pytest.raises(T2TError, match=f"^{message}"):
        problem(None, make_source=make_source).generate_data(tmp_path / "new" / "data")
    assert not (tmp_path / "new").exists(), "nothing is left behind"
