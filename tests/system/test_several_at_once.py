"""Commands that are started at the same time and make the same folder, as in a sweep of a job scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2t_revival import registry
from tests.support.processes import start_command

pytestmark = pytest.mark.slow
PROBLEM = ["--problem=translate_ende", "--data_source=sample"]
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
