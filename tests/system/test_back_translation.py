"""From a reverse model and monolingual text to a corpus, by one worker or several."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from t2t_revival.addons.back_translation.corpus import BackTranslation
from t2t_revival.cli import back_translate
from tests.support.commands import run
from tests.support.decoded_blocks import content

pytestmark = pytest.mark.slow
DECODING = "--decode_hparams=extra_length=2,batch_size=256"  # in several batches a block


@pytest.fixture(scope="module")
def place(small_corpus: Path, train_small: Callable[[str, str], Path]) -> Path:
    """A folder with text, and a model from German of few updates."""
    train_small("translate_ende_rev", "reverse")
    return small_corpus


def back_translate_to(folder: Path, place: Path, *more: str) -> None:
    """Runs the command, with blocks of few lines, so that workers share a small text."""
    mono, model = f"--mono={place / 'mono.de'}", f"--model_dir={place / 'reverse'}"
    with mock.patch.object(back_translate, "BackTranslation", partial(BackTranslation, block_lines=10)):
        run("t2t-back-translate", model, mono, f"--corpus_dir={folder}", DECODING, *more)


@pytest.fixture(scope="module")
def noised(place: Path) -> Path:
    """A corpus with noise, made by one process in one go."""
    back_translate_to(place / "noised", place, "--method=noised")
    return place / "noised"


def test_outputs_are_the_decoders(place: Path, noised: Path, tmp_path: Path) -> None:
    folder, outputs = shutil.copytree(noised, tmp_path / "plain"), tmp_path / "outputs"
    (folder / "corpus.json").unlink()
    back_translate_to(folder, place)
    model, mono = f"--output_dir={place / 'reverse'}", f"--decode_from_file={place / 'mono.de'}"
    run("t2t-decoder", model, mono, f"--decode_to_file={outputs}", DECODING)
    assert (folder / "train.en").read_bytes() == outputs.read_bytes()
    assert (folder / "train.en").read_bytes() != (noised / "train.en").read_bytes()


def test_samples_do_not_depend_on_the_number_of_workers(place: Path, tmp_path: Path) -> None:
    for shards in (1, 2):
        for worker in range(shards):
            own = ("--method=sampling", f"--decode_shards={shards}", f"--worker_id={worker}")
            back_translate_to(tmp_path / f"by {shards}", place, *own)
    assert content(tmp_path / "by 1") == content(tmp_path / "by 2")
    lines = (tmp_path / "by 1" / "train.en").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 30
