"""Data whose source has changed since: noticed at the next start, and made again by `overwrite`."""

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_revival import T2TError, Text2TextProblem, registry
from t2t_revival.data.config import Metadata, metadata_path
from t2t_revival.utils import origins
from t2t_revival.utils.origins import Origins
from tests.support.line_corpus import interrupt_at, snapshot, write_corpus


def problem(corpus, name="translate_ende", **settings) -> Text2TextProblem:
    return registry.problem(name, data_source=None if corpus is None else str(corpus), **settings)


def stages_of(problem: Text2TextProblem, data: Path, **how) -> list[str]:
    """Generates data; returns the stages and lines of its progress."""
    stages: list[str] = []
    problem.generate_data(data, progress=lambda stage, done, total: stages.append(stage), **how)
    return stages


def edit(file: Path) -> None:
    """Changes a letter, so that the size stays, and the time as a program does that restores it."""
    content = file.read_bytes()
    file.write_bytes(content.replace(b"e", b"a", 1))
    assert content != file.read_bytes()


@pytest.fixture
def made(corpus, tmp_path):
    """A data_dir of the corpus."""
    problem(corpus, vocab_size=330).generate_data(tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize("name", ["train.en", "dev.de"])
def test_an_edited_file_is_named_with_the_remedy(corpus, made, name):
    before = snapshot(made)
    edit(corpus / name)
    message = (
        f"{corpus} has changed since translate_ende in {made} was made of it: {corpus}/{name} has other "
        "content of the same size; make it again by t2t-datagen with the same flags and "
        "--overwrite, or give another --data_dir"
    )
    for asked in (problem(corpus), problem(None)):
        for check in (asked.generate_data, lambda made, asked=asked: asked.open(made).check_origins()):
            with pytest.raises(T2TError) as raised:
                check(made)
            assert str(raised.value) == message
    with pytest.raises(T2TError, match="has changed since"):
        registry.problem("translate_ende_rev").open(made).check_origins()
    assert snapshot(made) == before


def test_a_new_a_removed_and_a_packed_file_are_changes(corpus, made):
    def assert_changed(message):
        with pytest.raises(T2TError, match=message):
            problem(corpus).open(made).check_origins()

    for name in ("test.en", "train.weights", "train.align", "dev.align"):
        (corpus / name).touch()
        assert_changed(rf"{name} is new")
        (corpus / name).unlink()
    with gzip.open(corpus / "dev.en.gz", "wb") as packed:
        packed.write((corpus / "dev.en").read_bytes())
    assert problem(corpus).open(made).check_origins() == []  # the plain file is read
    (corpus / "dev.en").unlink()
    assert_changed(r"dev\.en\.gz is new")
    (corpus / "dev.en.gz").unlink()
    assert_changed(r"dev\.en is not there any more")


def test_another_time_alone_is_no_change_and_without_it_no_file_is_read(corpus, made, monkeypatch):
    known = Metadata.load(metadata_path(made, "translate_ende"))
    for file in corpus.iterdir():
        os.utime(file, (1, 1))
    assert problem(corpus).open(made).check_origins() == []
    assert problem(corpus).generate_data(made) == known
    now = Origins.of(corpus.iterdir())
    monkeypatch.setattr(origins, "checksum", lambda path: 1 / 0)
    assert now.change([*corpus.iterdir()]) == now.change() == ""


def test_a_corpus_that_is_not_here_cannot_be_checked(corpus, made):
    corpus.rename(corpus.with_name("elsewhere"))
    (note,) = problem(None).open(made).check_origins()
    assert note.startswith(f"{corpus} is not here: whether it has changed since")
    assert stages_of(problem(None), made) == [note, "verifying"]


def test_an_unfinished_generation_notices_too(corpus, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        problem(corpus).generate_data(tmp_path / "data", progress=interrupt_at("pairs", 1))
    edit(corpus / "train.en")
    with pytest.raises(T2TError, match=r"train\.en has other content"):
        problem(corpus).generate_data(tmp_path / "data")


def test_a_file_that_changes_while_it_is_read_is_an_error(corpus, tmp_path):
    def change(stage, done, total):
        if stage == "pairs" and done == 300:
            edit(corpus / "train.en")

    with pytest.raises(T2TError, match=r"was read while it was written: .*train\.en has other content"):
        problem(corpus).generate_data(tmp_path / "data", progress=change)
    assert not metadata_path(tmp_path / "data", "translate_ende").exists()


def test_overwrite_makes_what_a_new_data_dir_would_have(corpus, made, tmp_path):
    edit(corpus / "train.en")
    other = write_corpus(tmp_path / "other", train=200)
    for asked in (problem(corpus, vocab_size=330), problem(other, vocab_size=320)):
        asked.generate_data(made, overwrite=True)
        fresh = tmp_path / f"fresh{asked.config.vocab_size}"
        asked.generate_data(fresh)
        assert snapshot(made) == snapshot(fresh)
        assert asked.open(made).check_origins() == []


def test_overwrite_keeps_what_is_not_asked_for(corpus, tmp_path):
    data = tmp_path / "data"
    for asked in (corpus, f"a={corpus}:1"):
        how = {"vocab_size": 330, "clean": True, "separate_vocabularies": True}
        problem(asked, **how).generate_data(data, overwrite=True)
        (corpus / "train.en").write_text((corpus / "train.en").read_text().replace("house", "hauses"))
        problem(None, vocab_size=330).generate_data(data, overwrite=True)
        made = Metadata.load(metadata_path(data, "translate_ende"))
        assert (made.clean, len(made.vocabularies)) == (True, 2)
        assert made.source == str(asked)


def test_overwrite_loses_nothing_where_the_source_cannot_be_read(corpus, made):
    before = snapshot(made)
    (corpus / "dev.de").write_text("one line\n")
    with pytest.raises(T2TError, match="not aligned"):
        problem(corpus).generate_data(made, overwrite=True)
    with pytest.raises(T2TError, match="no such folder"):
        problem(corpus / "none").generate_data(made, overwrite=True)
    assert snapshot(made) == before


def test_overwrite_resumes_what_it_began(corpus, made):
    edit(corpus / "train.en")
    asked = problem(corpus, vocab_size=330)
    with pytest.raises(KeyboardInterrupt):
        asked.generate_data(made, progress=interrupt_at("pairs", 101), overwrite=True)
    shards = {path: path.stat().st_mtime_ns for path in made.glob("*-train-*")}
    assert len(shards) == 4
    assert "vocabulary" not in stages_of(asked, made, overwrite=True)
    assert shards == {path: path.stat().st_mtime_ns for path in shards}


def test_overwrite_leaves_other_problems_their_data(corpus, made):
    vocabulary = next(made.glob("vocab.*.spm"))
    other = write_corpus(corpus.with_name("french"), languages=("en", "fr"))
    problem(other, "translate_enfr", vocab_file=vocabulary).generate_data(made)
    french = {name: content for name, content in snapshot(made).items() if "enfr" in name}
    problem(corpus, vocab_file=vocabulary).generate_data(made, overwrite=True)
    assert {name: content for name, content in snapshot(made).items() if "enfr" in name} == french
    assert problem(None, "translate_enfr").open(made).vocabularies


def test_a_vocabulary_that_was_given_and_has_changed_is_named(corpus, made, tmp_path):
    own = next(made.glob("vocab.*.spm")).read_bytes()
    given = tmp_path / "shared.spm"
    given.write_bytes(own)
    problem(corpus, vocab_file=given).generate_data(tmp_path / "second")
    assert problem(corpus).open(tmp_path / "second").check_origins() == []
    given.write_bytes(own + b"x")
    for check in (lambda data: problem(None).open(data).check_origins(), problem(corpus).generate_data):
        with pytest.raises(T2TError, match=rf"a vocabulary has changed since .*: {given} has .* bytes"):
            check(tmp_path / "second")
    given.unlink()  # data_dir has its copy
    assert problem(corpus).open(tmp_path / "second").check_origins() == []


def test_each_corpus_of_a_mixture_is_checked(corpus, tmp_path):
    second, data = write_corpus(tmp_path / "second", train=100), tmp_path / "data"
    listed = f"a={corpus}:1,b={second}:1"
    problem(listed, vocab_size=330).generate_data(data)
    assert problem(listed).open(data).check_origins() == problem(None).open(data).check_origins() == []
    edit(second / "train.de")
    for asked in (listed, None):
        with pytest.raises(T2TError, match=rf"{second} has changed since translate_ende\.b .*train\.de"):
            problem(asked).open(data).check_origins()
        with pytest.raises(T2TError, match=rf"{second} has changed since translate_ende\.b .*train\.de"):
            problem(asked).generate_data(data)
    problem(listed, vocab_size=330).generate_data(data, overwrite=True)
    problem(listed, vocab_size=330).generate_data(tmp_path / "fresh")
    assert snapshot(data) == snapshot(tmp_path / "fresh")
    problem(corpus, vocab_size=330).generate_data(data, overwrite=True)
    problem(corpus, vocab_size=330).generate_data(tmp_path / "single")
    assert snapshot(data) == snapshot(tmp_path / "single")


def test_a_changed_list_of_corpora_is_noticed_without_the_flag(corpus, tmp_path):
    second, data, listed = (
        write_corpus(tmp_path / "second", train=100),
        tmp_path / "data",
        tmp_path / "c.yaml",
    )

    def write_list(weight):
        listed.write_text(
            f"corpora:\n- {{name: a, source: {corpus}, weight: 1}}\n"
            f"- {{name: b, source: {second}, weight: {weight}}}\n"
        )

    write_list(1)
    problem(listed, vocab_size=330).generate_data(data)
    assert problem(None).open(data).check_origins() == []
    write_list(3)
    with pytest.raises(T2TError, match=rf"{listed} has changed since .* give --data_source={listed}"):
        problem(None).open(data).check_origins()
    problem(listed).generate_data(data)
    assert problem(None).open(data).check_origins() == []
    listed.unlink()
    assert problem(None).open(data).check_origins() == [
        f"{listed} is not here: whether its corpora have changed cannot be checked"
    ]


def test_a_folder_of_trees_is_checked(sources, tmp_path):
    trees, data = shutil.copytree(sources / "trees", tmp_path / "trees"), tmp_path / "data"
    problem(trees, "parse_wsj", vocab_size=330).generate_data(data)
    assert problem(None, "parse_wsj").open(data).check_origins() == []
    edit(trees / "dev.trees")
    with pytest.raises(T2TError, match=r"dev\.trees has other content"):
        problem(None, "parse_wsj").open(data).check_origins()


SCRIPT = """
from t2t_revival import Text2TextProblem
from t2t_revival.data import workers
from t2t_revival.data.sources import FolderSource

workers.PAIRS_PER_WORKER, workers.cores = 100, lambda: 2
print("runs", flush=True)

class Own(FolderSource):
    pass

class Mine(Text2TextProblem):
    def make_source(self, name, tmp_dir):
        return SOURCE(CORPUS, "en", "de", tmp_dir)

Mine(vocab_size=330).generate_data("data")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "said"),
    [("FolderSource", ""), ("Own", "move the source's class to a module of its own, or generate data under")],
)
def test_a_script_needs_no_main_guard_unless_the_source_is_its_own(corpus, tmp_path, source, said):
    script = SCRIPT.replace("SOURCE", source).replace("CORPUS", repr(str(corpus)))
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "script.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert said in ran.stderr
    assert said or (ran.returncode, ran.stdout, len([*tmp_path.glob("data/*-train-*")])) == (0, "runs\n", 10)
