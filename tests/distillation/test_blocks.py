"""Blocks of decoded lines, of teachers and of back-translations: the same bytes however they are made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from t2t_revival import DecodeHParams, T2TError
from t2t_revival.addons.back_translation.noise import WordNoise
from t2t_revival.addons.distillation.blocks import DecodedBlocks
from t2t_revival.decoding.files.shards import Shard
from t2t_revival.decoding.trained_models import TrainedModel
from tests.support import decoded_blocks
from tests.support.decoded_blocks import LINES, SOURCES, content
from tests.support.fake_translator import FakeTranslator

MakeBlocks = Callable[..., DecodedBlocks]
MakeTranslator = Callable[..., FakeTranslator]
FLAG = {"teacher": "--distilled_dir", "nearest": "--distilled_dir", "corpus": "--corpus_dir"}


@pytest.fixture(params=FLAG)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make(kind: str, tmp_path: Path, teacher: TrainedModel, data_dir: Path) -> MakeBlocks:
    """Makes blocks: (name of the folder, other arguments)."""

    def make(name: str, **fields: Any) -> DecodedBlocks:
        if kind == "corpus":
            return decoded_blocks.back_translation(tmp_path / name, teacher, noise=WordNoise(), **fields)
        own = {"nearest": kind == "nearest", **fields}
        return decoded_blocks.teacher_outputs(tmp_path / name, teacher, data_dir, **own)

    return make


def finish(blocks: DecodedBlocks, translator: FakeTranslator, shard: Shard | None = None) -> None:
    """Decodes a worker's blocks; where all are complete, the corpus is made of them."""
    blocks.decode(translator, shard or Shard())
    if blocks.are_complete() and hasattr(blocks, "make_corpus"):
        blocks.make_corpus()


@pytest.mark.parametrize("batches", range(5))
def test_interrupted_anywhere_they_end_with_the_same_bytes(
    make: MakeBlocks, kind: str, translator: MakeTranslator, batches: int
) -> None:
    whole, resumed = make("whole"), make("resumed")
    finish(whole, translator())
    first, second = translator(stop_after=batches), translator()
    with pytest.raises(KeyboardInterrupt) as stop:
        resumed.decode(first, Shard())
    assert bool(str(stop.value)) == bool(batches), "it says that blocks or lines are kept, if any are"
    assert not resumed.are_complete()
    finish(resumed, second)
    assert content(resumed.folder) == content(whole.folder)
    expected = LINES if kind == "corpus" else SOURCES
    assert sorted(first.decoded + second.decoded) == sorted(expected), "no line is decoded twice"


def test_an_interruption_between_blocks_says_how_many_are_kept(
    tmp_path: Path, teacher: TrainedModel, translator: MakeTranslator
) -> None:
    corpus = decoded_blocks.back_translation(tmp_path / "back", teacher)
    with pytest.raises(KeyboardInterrupt, match="interrupted; 2 of 4 blocks are complete and kept; the same"):
        corpus.decode(translator(stop_after=3), Shard())


@pytest.mark.parametrize("count", [2, 9])
def test_workers_write_the_files_of_a_single_one(
    make: MakeBlocks, translator: MakeTranslator, count: int
) -> None:
    whole, shared, again = make("whole"), make("shared"), translator()
    finish(whole, translator())
    assert not shared.are_complete()
    for number in reversed(range(count)):  # of 9, some have no block
        finish(shared, translator(), Shard(number, count))
    assert content(shared.folder) == content(whole.folder)
    finish(shared, again)
    assert again.decoded == []


COMMON = [
    ({"options": DecodeHParams(beam_size=2)}, "beam_size=3, not 2"),
    ({"options": DecodeHParams(beam_size=3, sampling_method="random")}, "method=argmax, not random"),
    ({"block_lines": 5}, "block_lines=4, not 5"),
]
OWN = {
    "teacher": [
        ({"nearest": True}, "nearest=False, not True"),
        ({"monolingual": ["the"]}, "=sha256:.*, not"),
    ],
    "nearest": [],
    "corpus": [
        ({"text": ["der Hund sieht"]}, "monolingual=sha256:.*, not sha256:"),
        ({"engine": "ctranslate2, int8"}, "engine=tensorflow, float32, not ctranslate2, int8"),
        ({"problem": "translate_enfr_rev"}, "problem=translate_ende_rev, not translate_enfr_rev"),
    ],
}


def test_a_folder_holds_outputs_of_one_kind(make: MakeBlocks, kind: str, translator: MakeTranslator) -> None:
    finish(make("out"), translator())
    assert make("out", options=DecodeHParams(beam_size=3, batch_size=99)).are_complete()
    for changes, fault in COMMON + OWN[kind]:
        other = make("out", **changes)
        for call in (other.are_complete, partial(other.decode, translator(), Shard())):
            with pytest.raises(
                T2TError, match=f"holds outputs with .*{fault}.*: give another {FLAG[kind]}, or rem"
            ):
                call()


def test_another_model_is_refused(
    make: MakeBlocks, kind: str, teacher: TrainedModel, translator: MakeTranslator
) -> None:
    blocks, name = make("out"), "model" if kind == "corpus" else "teacher"
    finish(blocks, translator())
    decoded_blocks.model_without_weights(teacher.folder.path, 2.0)
    with pytest.raises(T2TError, match=rf"holds outputs with {name}=model.ckpt-7.npz with weights .*, not "):
        blocks.decode(translator(), Shard())


def test_a_folder_that_cannot_be_written(make: MakeBlocks, kind: str, translator: MakeTranslator) -> None:
    blocks = make("out")
    blocks.folder.touch()
    with pytest.raises(T2TError, match=f"cannot write to .*; give another {FLAG[kind]}"):
        blocks.decode(translator(), Shard())
