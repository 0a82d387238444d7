"""The best checkpoints: which are kept, and that nothing but better ones removes them."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.selection import (
    best_value,
    keep_best,
    list_best,
    mark_stopped_early,
    set_aside,
    was_stopped_early,
)


def write(folder: Path, step: int) -> Path:
    path = folder / checkpoints.file_name(step)
    checkpoints.save(path, {"model/transformer/w": np.full((2, 3), step, np.float32)}, {"step": step})
    return path


def steps(folder: Path) -> list[int]:
    return [checkpoint.step for checkpoint in list_best(folder)]


def test_the_best_stays_when_newer_ones_take_its_place(tmp_path: Path) -> None:
    values = {}
    for step, bleu in ((1, 10.0), (2, 30.0), (3, 20.0), (4, 25.0)):
        write(tmp_path, step)
        values[step] = bleu
        keep_best(tmp_path, values, "bleu", 2)
        checkpoints.prune(tmp_path, 1)
    assert steps(tmp_path) == [2, 4]
    assert sorted(path.name for path in (tmp_path / "best").iterdir()) == [
        "best.json",
        "model.ckpt-2.npz",
        "model.ckpt-4.npz",
    ]
    arrays, _ = checkpoints.load(list_best(tmp_path)[0].path)
    assert arrays["model/transformer/w"][0, 0] == 2
    assert best_value(tmp_path) == ("bleu", 30.0, tmp_path / "best" / "model.ckpt-2.npz")


@settings(deadline=None, max_examples=30)
@given(
    losses=st.lists(st.integers(0, 4) | st.just(float("nan")), min_size=1, max_size=8),
    count=st.integers(0, 3),
    newest=st.integers(1, 3),
)
def test_what_is_kept_is_what_sorting_all_gives(tmp_path_factory, losses, count, newest) -> None:
    folder, values = tmp_path_factory.mktemp("run"), {}
    for step, loss in enumerate(losses, 1):
        write(folder, step)
        values[step] = loss
        keep_best(folder, values, "loss", count)
        checkpoints.prune(folder, newest)
    finite = [step for step, loss in values.items() if loss == loss]
    assert steps(folder) == sorted(finite, key=lambda step: (values[step], -step))[:count]


def test_a_file_that_is_still_there_needs_no_space(tmp_path: Path) -> None:
    path = write(tmp_path, 1)
    assert keep_best(tmp_path, {1: 1.0}, "loss", 1) == 1
    assert keep_best(tmp_path, {1: 1.0}, "loss", 1) == 1, "an evaluation that is repeated"
    assert list_best(tmp_path)[0].path.samefile(path)
    assert sorted(file.name for file in (tmp_path / "best").iterdir()) == ["best.json", path.name]


def test_without_hard_links_it_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = write(tmp_path, 1)
    keep_best(tmp_path, {1: 1.0}, "loss", 1)
    kept = list_best(tmp_path)[0].path
    assert not kept.samefile(path)
    assert kept.read_bytes() == path.read_bytes()
    inode = kept.stat().st_ino
    keep_best(tmp_path, {1: 1.0}, "loss", 1)
    assert kept.stat().st_ino == inode, "it is not copied again"


def test_a_full_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write(tmp_path, 1)
    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(T2TError, match=r"best: No space left on device; make room, or give --keep_best=0"):
        keep_best(tmp_path, {1: 1.0}, "loss", 1)
    assert not list((tmp_path / "best").iterdir())


def test_the_best_on_other_data_are_set_aside(tmp_path: Path) -> None:
    write(tmp_path, 1)
    assert set_aside(tmp_path, {1: 50.0}) is None
    keep_best(tmp_path, {1: 50.0}, "bleu", 1)
    assert set_aside(tmp_path, {1: 50.0, 2: 20.0}) is None, "the same data"
    write(tmp_path, 2)
    aside = set_aside(tmp_path, {2: 20.0})
    assert aside == tmp_path / "best.until-1"
    keep_best(tmp_path, {2: 20.0}, "bleu", 1)
    assert steps(tmp_path) == [2]
    assert sorted(path.name for path in aside.iterdir()) == ["best.json", "model.ckpt-1.npz"]
    (tmp_path / "best.until-2").mkdir()
    (tmp_path / "best.until-2" / "file").touch()
    with pytest.raises(T2TError, match=r"best\.until-2: Directory not empty; rename or remove it"):
        set_aside(tmp_path, {3: 10.0})


def test_none_is_kept_where_none_is_wanted(tmp_path: Path) -> None:
    write(tmp_path, 1)
    assert keep_best(tmp_path, {1: 1.0}, "loss", 0) is None
    assert not (tmp_path / "best").exists()
    keep_best(tmp_path, {1: 1.0}, "loss", 1)
    keep_best(tmp_path, {1: 1.0}, "loss", 0)
    assert steps(tmp_path) == []
    assert best_value(tmp_path) is None


def test_early_stopping_holds_until_training_goes_on(tmp_path: Path) -> None:
    write(tmp_path, 1)
    assert not was_stopped_early(tmp_path)
    mark_stopped_early(tmp_path)
    assert not was_stopped_early(tmp_path), "nothing is kept"
    keep_best(tmp_path, {1: 1.0}, "loss", 1)
    mark_stopped_early(tmp_path)
    assert was_stopped_early(tmp_path)
    write(tmp_path, 2)
    mark_stopped_early(tmp_path, stopped=False)
    assert not was_stopped_early(tmp_path)
    mark_stopped_early(tmp_path)
    keep_best(tmp_path, {1: 1.0, 2: 2.0}, "loss", 1)
    assert not was_stopped_early(tmp_path)


def test_a_corrupt_record_says_what_to_do(tmp_path: Path) -> None:
    write(tmp_path, 1)
    keep_best(tmp_path, {1: 1.0}, "loss", 1)
    (tmp_path / "best" / "best.json").write_text("{")
    with pytest.raises(T2TError, match=r"best\.json: corrupt.*remove it: t2t-trainer writes it again"):
        list_best(tmp_path)
    keep_best(tmp_path, {1: 1.0}, "loss", 1)
    assert steps(tmp_path) == [1]
