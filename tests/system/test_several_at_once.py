"""Commands that are started at the same time and make the same folder, as in a sweep of a job scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2t_revival import registry
from t2t_revival.checkpoints import directory as checkpoints
from tests.support.processes import start_command

pytestmark = pytest.mark.slow
PROBLEM = ["--problem=translate_ende", "--data_source=sample"]
SIZES = "num_hidden_layers=1,hidden_size=16,filter_size=16,num_heads=2,batch_size=512"
WAITING = "another process is generating data there; waiting for it"


def test_four_make_one_data_dir(tmp_path: Path, sample_data: Path) -> None:
    data = tmp_path / "new" / "data"
    processes = [
        start_command(tmp_path / f"{number}", "t2t-datagen", *PROBLEM, f"--data_dir={data}")
        for number in range(4)
    ]
    for process in processes:
        process.end()
    assert sum(WAITING in process.said for process in processes) in range(1, 4)
    problem = registry.problem("translate_ende")
    assert problem.open(data).fingerprint("train") == problem.open(sample_data).fingerprint("train")
    assert not list(data.glob(".*"))


@pytest.mark.nightly
def test_eight_trainings_on_an_empty_data_dir(tmp_path: Path) -> None:
    data, models = tmp_path / "new" / "data", [tmp_path / "models" / f"{number}" for number in range(8)]
    flags = [
        *PROBLEM,
        "--hparams_set=tiny",
        f"--hparams={SIZES}",
        "--train_steps=3",
        "--eval_bleu_sentences=0",
    ]
    processes = [
        start_command(
            tmp_path / f"{out.name}", "t2t-trainer", *flags, f"--data_dir={data}", f"--output_dir={out}"
        )
        for out in models
    ]
    for process in processes:
        process.end()
    assert sum(WAITING in process.said for process in processes) in range(1, 8)
    assert [[one.step for one in checkpoints.list_checkpoints(out)][-1] for out in models] == [3] * 8
