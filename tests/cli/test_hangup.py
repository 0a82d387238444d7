"""SIGHUP: commands whose terminal is gone keep their work; under nohup it is ignored."""

import os
import signal
import subprocess
import sys
import time

import pytest

from t2t_revival.checkpoints.directory import list_checkpoints
from t2t_revival.curve_files import TRAIN, read_curve
from tests.cli.signals import HANGUP_ENDS, NOHUP, beginning_with

pytestmark = pytest.mark.slow

SECONDS = 120
HPARAMS = "num_hidden_layers=1,hidden_size=8,filter_size=8,num_heads=2,batch_size=256,max_length=30"
MAIN = "import sys; from t2t_revival.cli.trainer import main; sys.argv[0] = 't2t-trainer'; sys.exit(main())"
TAKE_TERMINAL = f"fcntl.ioctl(0, termios.TIOCSCTTY, 0); {HANGUP_ENDS}"


def steps(out):
    """Returns the updates in the curve of a training."""
    return [row["step"] for row in read_curve(out, TRAIN)] if (out / "train.csv").exists() else []


def start(trained, out, before, **streams):
    """Starts a training that does not end by itself, and waits for its first updates."""
    flags = (
        f"--problem=translate_ende --hparams_set=tiny --data_dir={trained / 'data'} --output_dir={out} "
        f"--train_steps=1000000 --local_eval_frequency=500000 --hparams={HPARAMS} --log_step_count_steps=20"
    ).split()
    command = beginning_with(before, [sys.executable, "-c", MAIN, *flags])
    process = subprocess.Popen(command, **streams)
    end = time.monotonic() + SECONDS
    while not steps(out):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.1)
    return process


def test_a_terminal_that_is_gone_loses_no_update(trained, tmp_path):
    """The kernel sends SIGHUP when a terminal's other end closes; writing to it is an error then."""
    ours, terminal = os.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
    process = start(trained, tmp_path, TAKE_TERMINAL, start_new_session=True, **streams)
    os.close(terminal)
    os.close(ours)
    assert process.wait(SECONDS) == 129
    (checkpoint,) = list_checkpoints(tmp_path)
    assert checkpoint.step >= steps(tmp_path)[-1] > 0


def test_a_hangup_is_ignored_under_nohup(trained, tmp_path):
    process = start(trained, tmp_path / "out", NOHUP, stderr=subprocess.DEVNULL)
    process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == 143
