"""A reproduction that is small enough for a test."""

from pathlib import Path

import pytest

from t2t_revival import sample_corpus
from t2t_revival.reproduction.runs import Runs
from t2t_revival.reproduction.scales import Scale
from tests.support.line_corpus import write_lines
from tests.support.processes import run_command

SPLITS = {"train": slice(400), "dev": slice(400, 420), "test": slice(420, 440)}


@pytest.fixture(scope="session")
def tiny_scale() -> Scale:
    """One layer of 4 channels for each head, 20 updates."""

    def tiny(hparams):
        return hparams.replace(
            num_hidden_layers=1,
            hidden_size=4 * hparams.num_heads,
            filter_size=32,
            train_steps=20,
            learning_rate_warmup_steps=10,
            batch_size=512,
            effective_batch_size=0,
            max_length=128,
        )

    return Scale(
        name="cpu",
        description="Tiny.",
        data_source="sample",
        vocab_size=500,
        adapt=tiny,
        checkpoints=2,
        parsing=("parsing_small", "parsing_small"),
        parsing_hparams="train_steps=10,hidden_size=16,filter_size=32,num_hidden_layers=1,batch_size=512",
        parsing_beam=2,
    )


@pytest.fixture(scope="session")
def tiny_runs(tiny_scale, tmp_path_factory) -> Runs:
    """Runs on a part of the sample corpus, whose commands run in this process."""
    corpus = write_corpus(tmp_path_factory.mktemp("corpus"))
    return Runs(tmp_path_factory.mktemp("reproduction"), tiny_scale, run_here, str(corpus))


def write_corpus(folder: Path) -> Path:
    """Writes few sentences of the sample corpus, in three languages."""
    for split, part in SPLITS.items():
        for language in ("en", "de", "fr"):
            write_lines(folder / f"{split}.{language}", sample_corpus.lines(f"train.{language}")[part])
    return folder


def run_here(name: str, flags) -> None:
    """Runs a command's `main`, as a user's shell would."""
    arguments = [f"--{flag}={value}" for flag, value in flags.items() if value is not None]
    assert run_command(name, *arguments) == 0, (name, arguments)
