"""Converted checkpoints are made once, and again when they are not what they should be."""

import errno
import threading

import pytest

from t2t_revival import T2TError
from t2t_revival.decoding.converted_model import FOLDER, MODEL, ORIGIN, UNFINISHED, open_converted

WEIGHTS = {"weights": "1a2b3c4d", "positions": 1024}


class Conversions:
    """Counts conversions, and keeps the notes on them."""

    def __init__(self, checkpoint):
        self.checkpoint, self.count, self.notes = checkpoint, 0, []

    def open(self, **changes):
        def convert(folder):
            folder.mkdir()
            (folder / "model.bin").write_text(f"conversion {self.count}")
            (folder / "config.json").write_text("{}")
            self.count += 1

        def load(folder):
            return (folder / "model.bin").read_text()

        return open_converted(self.checkpoint, {**WEIGHTS, **changes}, convert, load, self.notes.append)


@pytest.fixture
def conversions(tmp_path):
    return Conversions(tmp_path / "model.ckpt-7.npz")


def test_once(conversions, tmp_path):
    assert [conversions.open(), conversions.open()] == ["conversion 0"] * 2
    (note,) = conversions.notes
    assert "model.ckpt-7.npz" in note
    assert str(tmp_path / FOLDER) in note


def test_again_for_other_weights_and_only_the_newest_is_kept(conversions, tmp_path):
    assert conversions.open() == "conversion 0"
    assert conversions.open(weights="0") == "conversion 1"
    assert conversions.open() == "conversion 2"
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == [MODEL]


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "model.bin").write_text("conversion 9"),
        lambda folder: (folder / "model.bin").unlink(),
        lambda folder: (folder / "more").touch(),
        lambda folder: (folder / ORIGIN).write_text("{"),
        lambda folder: (folder / ORIGIN).unlink(),
    ],
    ids=["changed", "missing", "added", "corrupt origin", "no origin"],
)
def test_again_where_it_is_damaged(conversions, tmp_path, damage):
    conversions.open()
    damage(tmp_path / FOLDER / MODEL)
    assert [conversions.open(), conversions.open()] == ["conversion 1"] * 2


def test_leftovers_of_a_killed_process_are_removed(conversions, tmp_path):
    (tmp_path / FOLDER / f"{UNFINISHED}x").mkdir(parents=True)
    conversions.open()
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == [MODEL]


def test_a_folder_that_cannot_be_written(conversions, tmp_path):
    (tmp_path / FOLDER).touch()
    assert [conversions.open(), conversions.open()] == ["conversion 0", "conversion 1"]
    assert all("for this run only" in note for note in conversions.notes)


def test_a_full_disk_is_named(tmp_path):
    def convert(folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(T2TError, match=r"cannot write a temporary folder: No space left on device; .*TMPDIR"):
        open_converted(tmp_path / "model.ckpt-7.npz", WEIGHTS, convert, str, lambda note: None)


def test_a_failed_conversion_leaves_nothing(conversions, tmp_path):
    def convert(folder):
        folder.mkdir()
        raise T2TError("no")

    with pytest.raises(T2TError, match=r"^no$"):
        open_converted(conversions.checkpoint, WEIGHTS, convert, str, conversions.notes.append)
    assert not list((tmp_path / FOLDER).iterdir())


def test_those_who_open_it_at_the_same_time_wait(conversions):
    threads = [threading.Thread(target=conversions.open) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert conversions.count == 1
