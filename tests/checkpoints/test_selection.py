"""The checkpoint that a model is used with."""

from pathlib import Path

import pytest

from t2t_revival import T2TError
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import load
from t2t_revival.checkpoints.selection import (
    keep_best,
    list_best,
    mark_average,
    mark_stopped_early,
    select_checkpoint,
    taking_next,
)
from tests.checkpoints.test_best import write

THERE = "newest (step 3), best (step 1), average (step 2), files of the steps 2, 3"  # in `run`


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Checkpoints of the steps 2 and 3, an average at 2, and the best, of step 1, which is pruned."""
    for step, loss in ((1, 1.0), (2, 3.0), (3, 2.0)):
        write(tmp_path, step)
        keep_best(tmp_path, {1: 1.0, step: loss}, "loss", 1)
    checkpoints.prune(tmp_path, 2)
    checkpoints.write_average(checkpoints.list_checkpoints(tmp_path)[:1], tmp_path / "averaged")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (None, "model.ckpt-3.npz"),
        ("newest", "model.ckpt-3.npz"),
        ("best", "best/model.ckpt-1.npz"),
        ("average", "averaged/model.ckpt-2.npz"),
        ("{run}/best", "best/model.ckpt-1.npz"),
        ("{run}/averaged", "averaged/model.ckpt-2.npz"),
        ("{run}", "model.ckpt-3.npz"),
        ("{run}/model.ckpt-2", "model.ckpt-2.npz"),
        ("{run}/model.ckpt-2.npz", "model.ckpt-2.npz"),
    ],
)
def test_a_checkpoint_has_a_name(run: Path, name: str | None, expected: str) -> None:
    assert select_checkpoint(run, name and name.format(run=run)).path == run / expected


def test_after_early_stopping_the_best_is_the_default(run: Path) -> None:
    mark_stopped_early(run)
    assert select_checkpoint(run).path == run / "best" / "model.ckpt-1.npz"
    assert select_checkpoint(run, "newest").step == 3


def test_an_average_of_the_last_is_preferred_to_the_best(run: Path) -> None:
    mark_stopped_early(run)
    checkpoints.write_average(checkpoints.list_checkpoints(run), run / "averaged")
    assert select_checkpoint(run).path == run / "averaged" / "model.ckpt-3.npz"


def test_a_corrupt_best_is_named_and_the_newest_used(run: Path) -> None:
    mark_stopped_early(run)
    damaged = list_best(run)[0].path
    damaged.write_bytes(damaged.read_bytes()[:-50])
    named = []
    assert select_checkpoint(run, None, lambda error: named.append(error.path)).step == 3
    assert named == [damaged]
    with pytest.raises(T2TError, match="no valid best checkpoint"):
        select_checkpoint(run, "best", lambda error: None)


def test_an_average_that_scored_worse_is_no_default(run: Path) -> None:
    checkpoints.write_average(checkpoints.list_checkpoints(run), run / "averaged")
    mark_average(run, 3, is_worse=True)
    assert select_checkpoint(run).path == run / "model.ckpt-3.npz"
    assert select_checkpoint(run, "average").path == run / "averaged" / "model.ckpt-3.npz"
    mark_stopped_early(run)
    assert select_checkpoint(run).path == run / "best" / "model.ckpt-1.npz"
    mark_average(run, 3, is_worse=False)
    assert select_checkpoint(run).path == run / "averaged" / "model.ckpt-3.npz"


@pytest.fixture
def read_removed(run: Path):
    """Reads the checkpoint of a name, the first of which a training removes after it was selected."""

    def read(name: str | None, on_removed=None) -> list[Path]:
        tried: list[Path] = []

        def select_and_load() -> list[Path]:
            tried.append(select_checkpoint(run, name).path)
            if len(tried) == 1:
                tried[0].unlink()
            load(tried[-1])
            return tried

        return taking_next(select_and_load, name, on_removed)

    return read


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (None, ["model.ckpt-3.npz", "averaged/model.ckpt-2.npz"]),
        ("newest", ["model.ckpt-3.npz", "model.ckpt-2.npz"]),
        ("{run}", ["model.ckpt-3.npz", "averaged/model.ckpt-2.npz"]),
    ],
)
def test_the_next_is_taken_where_the_first_is_removed_before_it_is_read(
    run: Path, read_removed, name: str | None, expected: list[str]
) -> None:
    removed: list[Path] = []
    tried = read_removed(name and name.format(run=run), lambda error: removed.append(error.path))
    assert tried == [run / each for each in expected]
    assert removed == tried[:1]


@pytest.mark.parametrize("name", ["best", "average"])
def test_where_the_removed_one_was_the_last_there_is_none(run: Path, read_removed, name: str) -> None:
    with pytest.raises(T2TError, match=f"no {name}.* in {run}"):
        read_removed(name, lambda error: None)


def test_a_link_to_nowhere_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "model.ckpt-9.npz").symlink_to(tmp_path / "nowhere")
    with pytest.raises(T2TError, match="no valid checkpoint in"):
        select_checkpoint(tmp_path, None, lambda error: None)


def test_a_selected_checkpoint_is_named_after_it_is_removed(run: Path) -> None:
    selected = select_checkpoint(run)
    name = selected.name
    selected.path.unlink()
    assert selected.name == name == f"model.ckpt-3.npz with weights {selected.weights}"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("bets", "best"),
        ("averaged", "average"),
        ("3", "{run}/model.ckpt-3.npz"),
        ("{run}/model.ckpt-30.npz", "{run}/model.ckpt-3.npz"),
    ],
)
def test_a_wrong_name_lists_what_there_is(run: Path, name: str, meant: str) -> None:
    with pytest.raises(T2TError) as raised:
        select_checkpoint(run, name.format(run=run))
    said = str(raised.value)
    assert said.startswith(f"no checkpoint {name.format(run=run)}; did you mean {meant.format(run=run)}")
    assert said.endswith(f"? {run} has " + THERE)


def test_a_name_like_no_other(run: Path) -> None:
    with pytest.raises(T2TError, match=rf"^no checkpoint xyz; {run} has newest "):
        select_checkpoint(run, "xyz")
