"""A damaged file, of whatever kind, is named by an error or read as it was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival import HParams, T2TError
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.data import examples
from t2t_revival.model_folder import ModelFolder, Run
from tests.support.line_corpus import translation, write_corpus

VOCABULARY = "vocab.translate_ende.330.spm"
DAMAGES = ("flip bits", "zero a range", "truncate", "append")


def opened(path: Path) -> Any:
    """The data of a file, as a command without --data_source opens it."""
    return translation(None, vocab_size=0).open(path.parent)


def meta_and_arrays(path: Path) -> list[Any]:
    arrays, meta = checkpoints.load(path)
    return [meta, *((name, array.shape, array.dtype, array.tobytes()) for name, array in arrays.items())]


READERS: dict[str, Callable[[Path], Any]] = {
    "data/translate_ende-train-00003-of-00010": lambda path: [*examples.read(opened(path).split("train"))],
    f"data/{VOCABULARY}": lambda path: opened(path).vocabularies.inputs.content,
    "data/translate_ende.meta.json": lambda path: opened(path).metadata,
    f"model/{VOCABULARY}": lambda path: ModelFolder(path.parent).vocabularies.inputs.content,
    "model/hparams.json": lambda path: ModelFolder(path.parent).hparams,
    "model/run.json": lambda path: Run.load(path.parent),
    "model/model.ckpt-7.npz": meta_and_arrays,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corrupt")
    translation(write_corpus(folder / "corpus")).generate_data(folder / "data")
    vocabulary, model = folder / "data" / VOCABULARY, ModelFolder(folder / "model")
    model.save(model.plan_run(opened(vocabulary), "tiny"), HParams(), vocabulary)
    weights = np.random.default_rng(1).random((40, 30), np.float32)
    arrays = {"model/transformer/a": weights, "model/transformer/b": -weights, "optimizer/m": weights**2}
    checkpoints.save(folder / "model/model.ckpt-7.npz", arrays, {"step": 7})
    return folder


def damaged(content: bytes, draw: Callable[[st.SearchStrategy], Any]) -> bytes:
    damage, at = draw(st.sampled_from(DAMAGES)), draw(st.integers(0, len(content) - 1))
    if damage == "flip bits":
        flipped = bytearray(content)
        for bit in draw(st.sets(st.integers(0, 8 * len(content) - 1), min_size=1, max_size=3)):
            flipped[bit // 8] ^= 1 << bit % 8
        return bytes(flipped)
    if damage == "zero a range":  # like a block that was never written
        size = draw(st.sampled_from([1, 16, 512, 4096]))
        return content[:at] + bytes(size)[: len(content) - at] + content[at + size :]
    return content[:at] if damage == "truncate" else content + draw(st.binary(min_size=1, max_size=500))


@pytest.mark.parametrize("name", READERS)
@given(st.data())
def test_damage_is_named_or_harmless(folder: Path, name: str, data: st.DataObject) -> None:
    path, read = folder / name, READERS[name]
    content, written = path.read_bytes(), read(path)
    path.write_bytes(damaged(content, data.draw))
    try:
        found = read(path)
    except T2TError as error:
        found = written if str(path) in str(error) else error
    finally:
        path.write_bytes(content)
    assert found == written
