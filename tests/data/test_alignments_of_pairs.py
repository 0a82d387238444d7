"""Word alignments of sources: of the sample corpus, and of files beside the text."""

import gzip
import pickle

import pytest

from t2t_revival import T2TError, registry, sample_corpus
from t2t_revival.data.sources import source
from t2t_revival.data.word_alignment import check_links, parse_pharaoh
from tests.support.line_corpus import opened, write_corpus

LINE = "0-0 1-1 2-2 3-3 4-4 5-5 6-6"  # of "the dog number 1 sees a cat"


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus", train=30, dev=5)


def align(corpus, lines, split="train"):
    (corpus / f"{split}.align").write_text("".join(f"{line}\n" for line in lines))


def test_lines_of_each_split_are_read(corpus):
    align(corpus, [f"{number % 7}-0" for number in range(30)])
    align(corpus, ["", LINE, "0-6", "6-0", ""], "dev")
    found = opened(corpus)
    assert list(found.alignments("train", 5, 9)) == ["5-0", "6-0", "0-0", "1-0"]
    assert list(found.alignments("dev", 0, 5)) == ["", LINE, "0-6", "6-0", ""]
    copy = pickle.loads(pickle.dumps(found))
    (corpus / "dev.align").unlink()
    assert list(copy.alignments("train", 29, 30)) == ["1-0"]


def test_without_files_there_are_none(corpus):
    align(corpus, [LINE] * 5, "dev")
    align(corpus, [LINE], "test")  # without a test split
    found = opened(corpus)
    assert found.alignments("train", 0, 30) is found.alignments("test", 0, 1) is None
    assert found.alignments("dev", 0, 5) is not None


def test_packed_files_are_unpacked_and_cleaned_away(corpus, tmp_path):
    with gzip.open(corpus / "train.align.gz", "wt") as file:
        file.write(f"{LINE}\n" * 30)
    found = opened(corpus, tmp_dir=tmp_path / "tmp")
    assert list(found.alignments("train", 0, 2)) == [LINE] * 2
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    found.close()
    assert not any((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize(
    ("split", "lines", "fault"),
    [
        ("train", [LINE] * 29, "train.align has 29 lines, and train has 30 pairs: write one for each"),
        ("dev", [LINE] * 6, "dev.align has 6 lines, and dev has 5 pairs: write one for each"),
        ("dev", [LINE, "0-0 1", *[LINE] * 3], "dev.align, line 2: '1' is no link such as 0-1"),
        ("train", [*[LINE] * 29, "7-0"], "train.align, line 30: link 7-0: the source has 7 words"),
    ],
)
def test_faulty_files_are_named(corpus, split, lines, fault):
    align(corpus, lines, split)
    with pytest.raises(T2TError, match=fault):
        opened(corpus).alignments("train", 0, 1)


def test_those_of_any_source_are_checked(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(type(opened(corpus)), "alignments", lambda *place: iter(["0-0", "7-0"] * 15))
    problem = registry.problem("translate_ende", data_source=str(corpus), make_alignments=True)
    with pytest.raises(T2TError, match="alignments of train, line 2: link 7-0: the source has 7 words"):
        problem.generate_data(tmp_path)


@pytest.mark.parametrize(("languages", "file", "step"), [("en de", "en-de", 1), ("fr en", "en-fr", -1)])
def test_those_of_the_sample_fit_its_pairs(languages, file, step):
    sample = source("sample", *languages.split())
    lines = list(sample.alignments("dev", 10, 20))
    stored = sample_corpus.lines(f"dev.{file}.align")[10:20]
    assert [parse_pharaoh(line).sure for line in lines] == [
        {link[::step] for link in parse_pharaoh(line).sure} for line in stored
    ]
    for line, pair in zip(lines, sample.pairs("dev", 10, 20), strict=True):
        check_links(parse_pharaoh(line).possible, *pair)
