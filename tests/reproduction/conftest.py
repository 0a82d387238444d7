"""A reproduction that is small enough for a test."""

import importlib

import pytest

from t2t_revival.reproduction.runs import Runs
from t2t_revival.reproduction.scales import Scale


@pytest.fixture(scope="session")
def tiny_scale() -> Scale:
    """Two layers of 16 channels, 20 updates."""

    def tiny(hparams):
        return hparams.replace(
            num_hidden_layers=2,
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
        vocab_size=400,
        adapt=tiny,
        checkpoints=2,
        parsing=("parsing_small", "parsing_small"),
        parsing_hparams="train_steps=10,hidden_size=16,filter_size=32,num_hidden_layers=1,batch_size=512",
        parsing_beam=2,
    )


@pytest.fixture(scope="session")
def tiny_runs(tiny_scale, tmp_path_factory) -> Runs:
    """Runs whose commands run in this process."""
    return Runs(tmp_path_factory.mktemp("reproduction"), tiny_scale, run_here, "sample")


def run_here(name: str, flags) -> None:
    """Runs a command's `main`, as a user's shell would."""
    module = importlib.import_module("t2t_revival.cli." + name.removeprefix("t2t-").replace("-", "_"))
    arguments = [f"--{flag}={value}" for flag, value in flags.items() if value is not None]
    assert module.main([name, *arguments]) == 0, (name, arguments)
