"""t2t-datagen: Ctrl-C while its processes make shards."""

import os
import signal
import subprocess
import sys

import pytest

from t2t_revival.cli import datagen
from t2t_revival.data.workers import cores
from tests.cli.signals import INTERRUPTIBLE, beginning_with

SLOW = """
import multiprocessing, time
from pathlib import Path
from t2t_revival import registry
from t2t_revival import Source
from t2t_revival import Text2TextProblem

class Slow(Source):
    kind, name, source_lang, target_lang = "slow", "slow", "en", "de"

    def splits(self):
        return ("train", "dev")

    def count(self, split):
        return 60_000 if split == "train" else 4

    def pairs(self, split, start, stop):
        slow = multiprocessing.parent_process() and Path(__file__).with_name("slow").exists()
        for n in range(start, stop):
            if slow:
                time.sleep(0.002)
            yield f"{n} dogs see the {n * n} other dogs", f"{n} Hunde sehen die {n * n} anderen"

@registry.register_problem
class UsrSlow(Text2TextProblem):
    source_lang, target_lang = "en", "de"

    def make_source(self, data_source, tmp_dir):
        return Slow()
"""


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(cores() < 2, reason="one core has no processes that make shards")
def test_ctrl_c_ends_promptly_and_a_second_run_goes_on(tmp_path, capsys):
    """Two processes make shards, which would take them a minute as long as the file "slow" exists."""
    package = tmp_path / "usr_slow"
    package.mkdir()
    (package / "__init__.py").write_text(SLOW)
    (package / "slow").touch()
    flags = ["--problem=usr_slow", f"--t2t_usr_dir={package}", f"--data_dir={tmp_path / 'data'}"]
    command = [sys.executable, "-m", "t2t_revival.cli.datagen", *flags, "--vocab_size=500"]
    process = subprocess.Popen(
        beginning_with(INTERRUPTIBLE, command),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if " of 60,004 pairs" in line:
            break
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "datagen: error: interrupted"
    assert not list((tmp_path / "data").glob(".*.tmp"))
    (package / "slow").unlink()
    assert datagen.main(["t2t-datagen", *flags, "--vocab_size=500"]) == 0
    assert "60,000" in capsys.readouterr().out
