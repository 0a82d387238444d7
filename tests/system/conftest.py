"""Data and models that several tests of commands share."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from t2t_revival import sample_corpus
from tests.support.commands import run
from tests.support.line_corpus import write_lines

MODEL = ["--problem=translate_ende", "--hparams_set=tiny"]
QUICK = "batch_size=1024,learning_rate_warmup_steps=300,layer_prepostprocess_dropout=0.0,num_hidden_layers=1"
SIZES = "num_hidden_layers=1,hidden_size=32,filter_size=32,num_heads=2,batch_size=1024"
TEXTS = {"train": slice(200), "dev": slice(200, 210), "test": slice(210, 220), "mono": slice(210, 250)}


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Returns a folder of a name, filled by the first test that needs it, in whichever process that is."""
    place = tmp_path_factory.getbasetemp()
    place = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place

    def made(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = place / name, place / f"{name}.done"
        with (place / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                fill(folder)
                done.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def sample_data(made_once: Callable) -> Path:
    """The data_dir of the sample corpus, English to German."""
    data = [MODEL[0], "--data_source=sample"]
    return made_once("sample_data", lambda folder: run("t2t-datagen", *data, f"--data_dir={folder}"))


@pytest.fixture(scope="session")
def sample_model(made_once: Callable, sample_data: Path) -> Path:
    """900 updates of one layer on small batches of the sample, the last three checkpoints averaged."""

    def train(out: Path) -> None:
        flags = [*MODEL, f"--output_dir={out}"]
        steps = ["--train_steps=900", "--local_eval_frequency=100", "--eval_bleu_sentences=0"]
        run("t2t-trainer", *flags, f"--data_dir={sample_data}", f"--hparams={QUICK}", *steps)
        run("t2t-avg-all", *flags, "--n=3")

    return made_once("sample_model", train)


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a part of the sample corpus, monolingual text, and `more.en`, which has a blank line."""
    place = tmp_path_factory.mktemp("small")
    for name, part in TEXTS.items():
        for language in ("en", "de"):
            write_lines(place / f"{name}.{language}", sample_corpus.lines(f"train.{language}")[part])
    (place / "more.en").write_text("The old dog sleeps.\n\nThe woman sleeps.\n", encoding="utf-8")
    return place


@pytest.fixture(scope="session")
def train_small(small_corpus: Path) -> Callable[[str, str], Path]:
    """Trains a model of a direction, by the name of its problem, for few updates; returns its folder."""

    def train(problem: str, name: str) -> Path:
        out = small_corpus / name
        run(
            "t2t-trainer",
            f"--problem={problem}",
            MODEL[1],
            f"--hparams={SIZES},learning_rate_warmup_steps=20",
            f"--data_source={small_corpus}",
            "--vocab_size=400",
            f"--data_dir={small_corpus / 'data'}",
            f"--output_dir={out}",
            "--train_steps=40",
            "--eval_bleu_sentences=0",
        )
        return out

    return train
