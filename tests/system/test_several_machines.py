"""`t2t-trainer --strategy=multi_worker`, as in docs/several_machines.md: two processes for two machines."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.cli.make_tf_configs import tf_configs
from tests.support.processes import start_command

pytestmark = pytest.mark.slow
SIZES = "num_hidden_layers=1,hidden_size=16,filter_size=16,num_heads=2,batch_size=512,max_length=64"
CHIEF, OTHER = 0, 1


def _train(data_dir: Path, output_dir: Path, workers: int) -> list[tuple[int, str]]:
    """How each worker ended, and what it said; the chief first."""
    flags = {
        "problem": "translate_ende",
        "hparams_set": "tiny",
        "hparams": SIZES,
        "data_dir": data_dir,
        "output_dir": output_dir,
        "train_steps": 4,
        "eval_bleu_sentences": 0,
        "strategy": "multi_worker",
    }
    processes = [
        start_command(
            output_dir.parent / f"worker {number}",
            "t2t-trainer",
            *(f"--{name}={value}" for name, value in flags.items()),
            environment={"TF_CONFIG": config},
        )
        for number, config in enumerate(tf_configs(_addresses(workers)))
    ]
    return [(process.wait(), process.said) for process in processes]


def _addresses(count: int) -> list[str]:
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]
    finally:
        for server in servers:
            server.close()


@pytest.mark.nightly
def test_two_machines_train_one_model(sample_data: Path, tmp_path: Path) -> None:
    outcomes = _train(sample_data, tmp_path / "out", workers=2)
    assert [status for status, _ in outcomes] == [0, 0], outcomes
    assert all("waiting for all workers to start" in said for _, said in outcomes)
    assert "saved model.ckpt-4.npz" in outcomes[CHIEF][1]
    assert "step 4: this worker has finished; the chief has reported and saved" in outcomes[OTHER][1]
    assert [checkpoint.step for checkpoint in checkpoints.list_checkpoints(tmp_path / "out")] == [4]
