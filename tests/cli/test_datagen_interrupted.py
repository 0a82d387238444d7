"""t2t-datagen: Ctrl-C while its processes make shards."""

import os
import signal
import subprocess
import sys

import pytest

from t2t_revival.cli import datagen
from t2t_revival.data.workers import cores
from tests.cli.signals import INTERRUPTIBLE, beginning_with
from tests.support.line_corpus import write_corpus

SLOW = """
import multiprocessing, time
from pathlib import Path
from t2t_revival import Text2TextProblem, registry
from t2t_revival.data.sources import FolderSource

class Slow(FolderSource):
    def pairs(self, split, start, stop):
        slow = multiprocessing.parent_process() and Path(__file__).with_name("slow").exists()
        for pair in super().pairs(split, start, stop):
            if slow:
                time.sleep(0.002)
            yield pair

@registry.register_problem
class UsrSlow(Text2TextProblem):
    def make_source(self, data_source, tmp_dir):
        return Slow(data_source, "en", "de", tmp_dir)
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
    corpus = write_corpus(tmp_path / "corpus", train=60_000, dev=4)
    flags = [f"--t2t_usr_dir={package}", f"--data_source={corpus}", f"--data_dir={tmp_path / 'data'}"]
    flags += ["--problem=usr_slow", "--vocab_size=500"]
    command = [sys.executable, "-m", "t2t_revival.cli.datagen", *flags]
    process = subprocess.Popen(
        beginning_with(INTERRUPTIBLE, command), stderr=subprocess.PIPE, text=True, start_new_session=True
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
    assert datagen.main(["t2t-datagen", *flags]) == 0
    assert "60,000" in capsys.readouterr().out
