"""From a reverse model and monolingual text to a corpus; workers that are killed make the same bytes."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.killed_midway import killed_with_lines
from tests.support.processes import Process
from tests.support.small_blocks import run_in_small_blocks

pytestmark = pytest.mark.slow
DECODING = "--decode_hparams=extra_length=2,batch_size=256"  # in several batches a block


@pytest.fixture(scope="module")
def place(small_corpus: Path, train_small: Callable[[str, str], Path]) -> Path:
    """A folder with text, and a model from German of few updates."""
    train_small("translate_ende_rev", "reverse")
    return small_corpus


def flags(place: Path, folder: Path, *more: str) -> list[str]:
    mono, model = f"--mono={place / 'mono.de'}", f"--model_dir={place / 'reverse'}"
    return [model, mono, f"--corpus_dir={folder}", DECODING, *more]


@pytest.fixture(scope="module")
def noised(place: Path) -> Path:
    """A corpus with noise, made by one process in one go."""
    assert run_in_small_blocks(*flags(place, place / "noised", "--method=noised")) == 0
    return place / "noised"


def content(folder: Path) -> dict[str, bytes]:
    """All files by name, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.nightly
def test_workers_that_are_killed_end_with_the_same_bytes(place: Path, noised: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shared"

    def own(worker: int) -> list[str]:
        return flags(place, folder, "--method=noised", "--decode_shards=2", f"--worker_id={worker}")

    killed = Process(tmp_path / "killed", killed_with_lines, [run_in_small_blocks, *own(1)])
    assert killed.wait() == -signal.SIGKILL, killed.said
    assert not (folder / "train.en").exists()
    first = Process(tmp_path / "first", run_in_small_blocks, own(0))
    again = Process(tmp_path / "again", run_in_small_blocks, own(1))
    said = first.end() + again.end()
    assert "resuming" in said
    assert "pairs     40 of 40 lines" in said, "by the worker that ends last"
    assert content(folder) == content(noised)


def test_outputs_are_the_decoders(place: Path, noised: Path, tmp_path: Path) -> None:
    folder, outputs = shutil.copytree(noised, tmp_path / "plain"), tmp_path / "outputs"
    (folder / "corpus.json").unlink()
    assert run_in_small_blocks(*flags(place, folder)) == 0
    model, mono = f"--output_dir={place / 'reverse'}", f"--decode_from_file={place / 'mono.de'}"
    run("t2t-decoder", model, mono, f"--decode_to_file={outputs}", DECODING)
    assert (folder / "train.en").read_bytes() == outputs.read_bytes()
    assert (folder / "train.en").read_bytes() != (noised / "train.en").read_bytes()


def test_samples_do_not_depend_on_the_number_of_workers(place: Path, tmp_path: Path) -> None:
    for shards in (1, 2):
        for worker in range(shards):
            own = ("--method=sampling", f"--decode_shards={shards}", f"--worker_id={worker}")
            assert run_in_small_blocks(*flags(place, tmp_path / f"by {shards}", *own)) == 0
    assert content(tmp_path / "by 1") == content(tmp_path / "by 2")
    lines = (tmp_path / "by 1" / "train.en").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 30
