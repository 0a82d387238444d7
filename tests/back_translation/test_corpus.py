"""Corpora of back-translations: aligned sides, the same bytes however they are made, and refusals."""

from __future__ import annotations

import dataclasses
import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from t2t_revival import T2TError, Text2TextProblem
from t2t_revival.addons.back_translation.corpus import BackTranslation, MonolingualText
from t2t_revival.addons.back_translation.noise import WordNoise
from t2t_revival.decoding.files.shards import Shard
from t2t_revival.decoding.trained_models import TrainedModel
from tests.support import decoded_blocks
from tests.support.decoded_blocks import LINES, content, lines
from tests.support.fake_translator import FakeTranslator

MakeCorpus = Callable[..., BackTranslation]
MakeTranslator = Callable[..., FakeTranslator]


@pytest.fixture
def make_corpus(tmp_path: Path, teacher: TrainedModel) -> MakeCorpus:
    """Makes the corpus of that model: (its name, other arguments)."""

    def make(name: str = "back", **fields: Any) -> BackTranslation:
        return decoded_blocks.back_translation(tmp_path / name, teacher, **fields)

    return make


def made(corpus: BackTranslation, translator: FakeTranslator, shard: Shard | None = None) -> dict[str, int]:
    corpus.decode(translator, shard or Shard())
    counts = corpus.make_corpus()
    assert counts
    return counts


def test_each_line_that_can_be_decoded_has_its_output(
    make_corpus: MakeCorpus, translator: MakeTranslator
) -> None:
    corpus = make_corpus()
    assert corpus.stored_counts() is None
    progress: list[tuple[int, int]] = []
    corpus.decode(translator(), Shard(), lambda *done: progress.append(done))
    counts = corpus.make_corpus()
    assert counts == corpus.stored_counts() == {"lines": 14, "left_out": 3, "empty_outputs": 0, "pairs": 11}
    assert lines(corpus.folder / "train.de") == LINES
    assert lines(corpus.folder / "train.en") == [line.upper() for line in LINES]
    assert [len(lines(block.inputs)) for block in corpus.blocks()] == [3, 3, 3, 2]
    assert progress[0] == (1, 14), "the blank line of the first block"


def test_empty_outputs_leave_no_line(make_corpus: MakeCorpus, translator: MakeTranslator) -> None:
    def translate(line: str) -> str:
        return "" if line in LINES[3:5] else line.upper()

    corpus = make_corpus()
    counts = made(corpus, translator(translate=translate))
    assert counts == {"lines": 14, "left_out": 3, "empty_outputs": 2, "pairs": 9}
    assert lines(corpus.folder / "train.de") == LINES[:3] + LINES[5:]
    nothing = make_corpus("nothing")
    nothing.decode(translator(translate=lambda line: ""), Shard())
    with pytest.raises(T2TError, match=r"no pair is left: 3 lines are blank .*, 11 outputs are empty"):
        nothing.make_corpus()
    assert not list(nothing.folder.glob("train.*"))


def test_noise_is_that_of_each_line(make_corpus: MakeCorpus, translator: MakeTranslator) -> None:
    plain, noised = make_corpus("plain"), make_corpus("noised", noise=WordNoise(seed=2))
    made(plain, translator())
    made(noised, translator())
    assert lines(noised.folder / "train.de") == LINES
    outputs = lines(noised.folder / "train.en")
    assert outputs[:4] == [
        WordNoise(seed=2).apply(line.upper(), number)
        for line, number in zip(LINES[:4], (1, 2, 3, 5), strict=True)
    ]
    assert outputs != lines(plain.folder / "train.en")
    again = dataclasses.replace(noised, noise=None)
    fault = r"holds a corpus with noise=drop=0.1,blank=0.1,swap=3,seed=2, not none: give another --corpus_dir"
    with pytest.raises(T2TError, match=fault):
        again.stored_counts()
    (again.folder / "corpus.json").unlink()
    assert again.stored_counts() is None
    again.make_corpus()
    assert content(again.folder) == content(plain.folder), "made of the same outputs"


def test_a_corpus_that_is_complete_is_kept_and_one_that_lacks_a_file_is_made_again(
    make_corpus: MakeCorpus, translator: MakeTranslator
) -> None:
    corpus = make_corpus()
    counts, before = made(corpus, translator()), content(corpus.folder)
    times = [path.stat().st_mtime_ns for path in corpus.corpus_files]
    assert corpus.make_corpus() == counts
    assert [path.stat().st_mtime_ns for path in corpus.corpus_files] == times
    corpus.corpus_files[0].unlink()
    assert corpus.stored_counts() is None
    assert corpus.make_corpus() == counts
    assert content(corpus.folder) == before


def test_an_existing_corpus_is_not_replaced(make_corpus: MakeCorpus, translator: MakeTranslator) -> None:
    corpus = make_corpus()
    corpus.folder.mkdir()
    (corpus.folder / "train.de.gz").write_bytes(b"the user's")
    with pytest.raises(T2TError, match=r"train.de.gz exists, and is not of this command: give another"):
        corpus.decode(translator(), Shard())
    assert not (corpus.folder / "origin.json").exists()


def test_a_full_disk_is_one_error_and_loses_nothing(
    make_corpus: MakeCorpus, translator: MakeTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = make_corpus()
    corpus.decode(translator(), Shard())

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(T2TError, match=r"cannot write to .*back: No space left on device"):
            corpus.make_corpus()
    assert not list(corpus.folder.glob("*train*"))
    assert corpus.make_corpus()


def test_a_block_that_lost_lines_is_named(make_corpus: MakeCorpus, translator: MakeTranslator) -> None:
    corpus = make_corpus()
    corpus.decode(translator(), Shard())
    block = corpus.blocks()[1]
    block.outputs.write_bytes(b"DER HUND\n")
    with pytest.raises(T2TError, match=r"00001.outputs: 1 lines for 3 inputs; remove it, and the block"):
        corpus.make_corpus()
    block.outputs.unlink()
    made(corpus, translator())
    assert lines(corpus.folder / "train.de") == LINES


@pytest.mark.parametrize(
    ("problem", "names"),
    [
        ("translate_ende_rev", ("train.en", "train.de")),
        ("translate_ende", ("train.de", "train.en")),
        ("translate_enfr_rev", ("train.en", "train.fr")),
    ],
)
def test_sides_are_named_by_languages(make_corpus: MakeCorpus, problem: str, names: tuple[str, str]) -> None:
    assert tuple(path.name for path in make_corpus(problem=problem).corpus_files) == names


def test_sides_without_languages_are_inputs_and_targets(make_corpus: MakeCorpus) -> None:
    class Plain(Text2TextProblem):
        pass

    corpus = make_corpus()
    forward = dataclasses.replace(corpus, problem=Plain())
    assert [path.name for path in forward.corpus_files] == ["train.targets", "train.inputs"]
    Plain.was_reversed = True
    assert [path.name for path in forward.corpus_files] == ["train.inputs", "train.targets"]


def test_a_corpus_is_of_text(make_corpus: MakeCorpus) -> None:
    with pytest.raises(T2TError, match="the outputs of parse_wsj are no text"):
        make_corpus(problem="parse_wsj")


def test_text_of_several_files_plain_and_packed(tmp_path: Path) -> None:
    (tmp_path / "one.de").write_bytes("\ufeffeins\r\nzwei".encode())
    (tmp_path / "two.de.gz").write_bytes(gzip.compress("drei\n\nfünf\n".encode()))
    text = MonolingualText.open([tmp_path / "one.de", tmp_path / "two.de.gz"])
    assert list(text.lines()) == ["eins", "zwei", "drei", "", "fünf"]
    (tmp_path / "same.de").write_text("eins\nzwei\ndrei\n\nfünf\n", encoding="utf-8")
    same = MonolingualText.open([tmp_path / "same.de"])
    assert (same.count, same.digest) == (text.count, text.digest) == (5, text.digest)
