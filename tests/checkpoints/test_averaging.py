"""Moving averages: means of their windows, made once, which leave other files untouched."""

import os
from pathlib import Path

import numpy as np
import pytest

from t2t_revival import HParams, T2TError
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.averaging import check_averages, sliding_averages
from t2t_revival.checkpoints.file import trained_on
from t2t_revival.data.vocabulary.text_encoder import fingerprint
from t2t_revival.model_folder import ModelFolder, Run

WEIGHTS = "model/transformer/w"


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    folder, vocabulary = tmp_path / "model", tmp_path / "vocab.spm"
    vocabulary.write_bytes(b"pieces")
    run = Run("translate_ende", "tiny", "data", vocabulary.name, fingerprint(vocabulary), {})
    ModelFolder(folder).save(run, HParams(), vocabulary)
    return folder


def write(folder: Path, step: int, value: float, **meta: str) -> Path:
    path = folder / checkpoints.file_name(step)
    checkpoints.save(path, {WEIGHTS: np.full((2, 3), value, np.float32)}, {"step": step, **meta})
    os.utime(path, (1e9 + step, 1e9 + step))
    return path


def open_folder(folder: Path, model_dir: Path, count: int, mix_data: bool = False) -> None:
    check_averages(folder, model_dir, count, mix_data)
    ModelFolder(model_dir).copy_to(folder)


def run(model_dir: Path, folder: Path, count: int) -> tuple[list, list, list]:
    """The averages, and the corrupt checkpoints and gaps that were reported."""
    damaged, gaps = [], []
    open_folder(folder, model_dir, count)
    found = checkpoints.list_checkpoints(model_dir)
    averages = list(sliding_averages(found, count, folder, damaged.append, gaps.append))
    return averages, damaged, gaps


def value(path: Path) -> float:
    weights = checkpoints.load(path)[0][WEIGHTS]
    assert (weights.shape, weights.dtype) == ((2, 3), np.float32)
    assert (weights == weights[0, 0]).all()
    return float(weights[0, 0])


def test_a_folder_of_averages_has_both_vocabularies(tmp_path: Path) -> None:
    files = [tmp_path / "vocab.en.spm", tmp_path / "vocab.zh.spm"]
    for path in files:
        path.write_bytes(path.name.encode())
    names = [(path.name, fingerprint(path)) for path in files]
    ModelFolder(tmp_path / "model").save(
        Run("p", "tiny", "data", *names[0], {}, *names[1]), HParams(), *files
    )
    open_folder(tmp_path / "average", tmp_path / "model", 2)
    for path in files:
        copy = tmp_path / "average" / path.name
        assert copy.read_bytes() == path.read_bytes()
        assert copy.stat().st_mtime_ns == (tmp_path / "model" / path.name).stat().st_mtime_ns


def test_each_is_the_mean_of_its_window(model_dir: Path, tmp_path: Path) -> None:
    for step, number in ((100, 1.0), (200, 2.0), (300, 6.0), (1000, 1.0)):
        write(model_dir, step, number)
    averages, _, _ = run(model_dir, tmp_path / "avg", 3)
    assert [(average.step, value(average.path)) for average in averages] == [(300, 3.0), (1000, 3.0)]
    assert [average.path.stat().st_mtime for average in averages] == [1e9 + 300, 1e9 + 1000]
    assert value(model_dir / "model.ckpt-300.npz") == 6.0, "the training's own stay as they are"


def test_what_is_there_stays_and_what_has_changed_is_made_again(model_dir: Path, tmp_path: Path) -> None:
    for step in (1, 2, 3):
        write(model_dir, step, step)
    assert [average.made for average in run(model_dir, tmp_path / "avg", 2)[0]] == [True, True]
    write(model_dir, 4, 10.0)
    averages = run(model_dir, tmp_path / "avg", 2)[0]
    assert [(average.step, average.made) for average in averages] == [(2, False), (3, False), (4, True)]
    content = bytearray(averages[0].path.read_bytes())
    content[len(content) // 3] ^= 1
    averages[0].path.write_bytes(content)
    os.utime(averages[0].path, (1e9 + 2, 1e9 + 2))
    assert [average.made for average in run(model_dir, tmp_path / "avg", 2)[0]] == [True, False, False]
    assert value(averages[0].path) == 1.5


def test_averages_begin_again_where_the_training_data_changes(model_dir: Path, tmp_path: Path) -> None:
    """The first checkpoints do not name their data, as an imported one."""
    for step, data in ((1, ""), (2, ""), (3, "a"), (4, "a"), (5, "b"), (6, "b"), (7, "b")):
        write(model_dir, step, step, **({"data": data} if data else {}))
    folder, changes = tmp_path / "avg", []
    open_folder(folder, model_dir, 2)

    def moving(mix_data: bool) -> list[int]:
        found = checkpoints.list_checkpoints(model_dir)
        averages = sliding_averages(found, 2, folder, pytest.fail, changes.append, mix_data)
        return [average.step for average in averages]

    assert moving(mix_data=False) == [2, 4, 6, 7]
    assert [change.split(": ")[1] for change in changes] == [
        "step 3 may have been trained on other data than the one before it (unknown -> a)",
        "step 5 was trained on other data than the one before it (a -> b)",
    ]
    open_folder(folder, model_dir, 2)
    assert moving(mix_data=True) == [2, 3, 4, 5, 6, 7]
    assert value(folder / "model.ckpt-5.npz") == 4.5
    mixed = [trained_on(folder / f"model.ckpt-{step}.npz") for step in range(2, 8)]
    assert mixed == ["", "+a", "a", "a+b", "b", "b"]
    open_folder(folder, model_dir, 2, mix_data=True)
    with pytest.raises(T2TError, match=r"model.ckpt-3.npz, an average that mixes .*, or --mix_data"):
        open_folder(folder, model_dir, 2)


def test_a_damaged_checkpoint_is_named_and_the_one_before_taken(model_dir: Path, tmp_path: Path) -> None:
    for step in (1, 2, 3):
        write(model_dir, step, step)
    damaged = model_dir / "model.ckpt-2.npz"
    damaged.write_bytes(damaged.read_bytes()[:200])
    averages, told, _ = run(model_dir, tmp_path / "avg", 2)
    assert [error.path for error in told] == [damaged]
    assert [(average.step, value(average.path)) for average in averages] == [(3, 2.0)]


def test_a_checkpoint_that_the_training_removed(model_dir: Path, tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        write(model_dir, step, step)
    folder, gaps = tmp_path / "avg", []
    open_folder(folder, model_dir, 2)

    def found():
        for checkpoint in checkpoints.list_checkpoints(model_dir):
            if checkpoint.step == 3:
                (model_dir / "model.ckpt-2.npz").unlink()
            yield checkpoint

    averages = list(sliding_averages(found(), 2, folder, pytest.fail, gaps.append))
    assert [average.step for average in averages] == [2, 4]
    assert [gap[:30] for gap in gaps] == ["warning: step 3 has no average"]


def test_a_checkpoint_that_the_training_removes_while_its_average_is_written(
    model_dir: Path, tmp_path: Path, monkeypatch
) -> None:
    for step in (1, 2):
        write(model_dir, step, step)
    write_average = checkpoints.write_average

    def and_removed(window: list[checkpoints.Checkpoint], folder: Path) -> Path:
        path = write_average(window, folder)
        window[-1].path.unlink()
        return path

    monkeypatch.setattr("t2t_revival.checkpoints.averaging.write_average", and_removed)
    averages, _, gaps = run(model_dir, tmp_path / "avg", 2)
    assert [(average.step, average.path.stat().st_mtime) for average in averages] == [(2, 1e9 + 2)]
    assert gaps == []


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("model", "the training's own folder"),
        ("other", "no average"),
        ("avg", "a mean of 2 checkpoints, not of 1"),
    ],
)
def test_folders_that_hold_something_else(model_dir: Path, tmp_path: Path, place: str, said: str) -> None:
    for step in (1, 2):
        write(model_dir, step, step)
        write(tmp_path / "other", step, 9.0)
    run(model_dir, tmp_path / "avg", 2)
    with pytest.raises(T2TError, match=said):
        open_folder(tmp_path / place, model_dir, 1)
    assert value(tmp_path / "other" / "model.ckpt-1.npz") == 9.0
