"""From a reverse model and monolingual text to a corpus; workers that are killed make the same bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import run
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
