import gzip
import pickle
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.data import base_source
from t2t_revival.data.sources import source
from tests.support.line_corpus import all_pairs, opened

PAIRS = {
    "train": [("one", "eins"), ("two\u2028lines ", " zwei"), ("three\rthree", "drei")],
    "dev": [("a dog", "ein Hund")],
}


def write(folder, split, pairs, end="\n"):
    for side, language in enumerate(("en", "de")):
        text = "".join(pair[side] + end for pair in pairs)
        (folder / f"{split}.{language}").write_bytes(text.encode())


@pytest.fixture
def folder(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for split, pairs in PAIRS.items():
        write(corpus, split, pairs)
    return corpus


def test_a_folder_is_read_as_it_is(folder):
    corpus = opened(folder)
    assert corpus.splits() == ("train", "dev")
    assert {split: all_pairs(corpus, split) for split in corpus.splits()} == PAIRS
    assert corpus.name == str(folder.resolve())
    write(folder, "test", [("x", "y")])
    assert opened(folder).splits() == ("train", "dev", "test")


@pytest.mark.parametrize("last_line_ended", [True, False])
def test_windows_line_ends_and_byte_order_marks_are_removed(folder, last_line_ended):
    content = b"\xef\xbb\xbfone\r\n\xef\xbb\xbfkept\r\nthree" + b"\r\n" * last_line_ended
    (folder / "train.en").write_bytes(content)
    assert [pair[0] for pair in all_pairs(opened(folder))] == ["one", "\ufeffkept", "three"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff")), min_size=1)
)
def test_every_range_of_lines_is_that_of_the_whole(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("corpus")
    for split in ("train", "dev"):
        write(folder, split, [(line, line) for line in lines])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base_source, "INDEX_STEP", 2)
        corpus = opened(folder)
        assert corpus.count("train") == len(lines)
        for start in range(len(lines) + 1):
            for stop in range(start, len(lines) + 2):
                assert [pair[0] for pair in corpus.pairs("train", start, stop)] == lines[start:stop]


def test_compressed_sides_are_unpacked_once_and_cleaned_away(folder, tmp_path):
    for plain in list(folder.iterdir()):
        with gzip.open(f"{plain}.gz", "wb") as packed:
            packed.write(plain.read_bytes())
        plain.unlink()
    corpus = opened(folder, tmp_dir=tmp_path / "tmp")
    assert all_pairs(corpus) == PAIRS["train"]
    assert len(list((tmp_path / "tmp").iterdir())) == 4
    corpus.close()
    assert not any((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("name", ["folder", "sample", "tfds:x/y", "hf:x/y/z"])
def test_a_source_does_nothing_before_it_is_asked_and_travels(name, folder):
    corpus = opened(folder if name == "folder" else name)
    assert pickle.loads(pickle.dumps(corpus)).name == corpus.name


def test_a_copy_in_another_process_needs_not_count_again(folder):
    corpus = opened(folder)
    corpus.splits()
    copy = pickle.loads(pickle.dumps(corpus))
    (folder / "dev.en").unlink()
    assert all_pairs(copy) == PAIRS["train"]


HALF_GZIP = gzip.compress(b"one\ntwo\nthree\n" * 100)[:-20]
FAULTS = {
    "a missing file": ("train.en", None, r"train\.en: no such file, nor train\.en\.gz"),
    "a missing side of dev": ("dev.de", None, r"dev\.de: no such file, nor dev\.de\.gz"),
    "half a test split": ("test.de", b"x\n", r"test\.en: no such file"),
    "Latin-1": ("train.de", b"eins\nz\xfcwei\ndrei\n", r"train\.de, line 2: not UTF-8 .*; convert the file"),
    "other lengths": ("train.de", b"eins\nzwei\n", r"train\.en has 3 lines, .*train\.de has 2"),
    "half a gzip file": ("train.en.gz", HALF_GZIP, r"train\.en\.gz: corrupt gzip file: .*; put a valid copy"),
    "a gzip file of text": ("train.en.gz", b"one\n", r"train\.en\.gz: corrupt gzip file"),
}


@pytest.mark.parametrize(("name", "content", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_folder_is_an_error_that_names_the_file(folder, tmp_path, name, content, fault):
    (folder / name.removesuffix(".gz")).unlink(missing_ok=True)
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(T2TError, match=fault):
        opened(folder, tmp_dir=tmp_path / "tmp").splits()
    assert not list(tmp_path.glob("tmp/*"))


def test_an_empty_corpus_is_named(folder):
    write(folder, "train", [])
    with pytest.raises(T2TError, match=r"train\.en: the file is empty"):
        opened(folder).splits()


def test_wmt14_needs_a_set_for_the_languages():
    with pytest.raises(T2TError, match="no WMT 2014 set from en to de"):
        opened("wmt14")
    assert opened("wmt14", tfds_default="wmt14_translate/de-en").name == "tfds:wmt14_translate/de-en"


def test_the_sample_is_the_same_from_any_place():
    sample = opened("sample")
    assert sample.splits() == ("train", "dev", "test")
    part = list(sample.pairs("dev", 10, 20))
    assert part == all_pairs(opened("sample"), "dev")[10:20]
    assert len(part) == 10
    with pytest.raises(T2TError, match="has en, de, fr, not 'cs'"):
        next(source("sample", "en", "cs").pairs("dev", 0, 1))
    with pytest.raises(T2TError, match="has en, de, fr, not 'cs'"):
        next(source("sample", "en", "cs").alignments("dev", 0, 1))


def test_importing_sources_loads_neither_tensorflow_nor_datasets():
    code = "import sys, t2t_revival.data.generation as _; sys.exit(any(map(sys.modules.get, sys.argv[1:])))"
    assert subprocess.run([sys.executable, "-c", code, "tensorflow", "datasets"], check=False).returncode == 0
