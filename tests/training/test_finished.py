"""A training that has nothing left to do is found out from its files alone."""

import subprocess
import sys

import numpy as np
import pytest

from t2t_revival.errors import T2TError
from t2t_revival.training.checkpoints import directory as checkpoints
from t2t_revival.training.finished import check_unfinished

ROWS = "step,target_tokens,seconds,loss\n4,1,1,3.0\n"


@pytest.fixture
def finished(tmp_path):
    """At step 4, with its evaluation."""
    for step in (2, 4):
        arrays = {"model/transformer/w": np.ones(3, np.float32)}
        checkpoints.save(tmp_path / checkpoints.file_name(step), arrays, {"step": step})
    (tmp_path / "dev.csv").write_text(ROWS)
    return tmp_path


@pytest.mark.parametrize("train_steps", [3, 4])
def test_nothing_is_left(finished, train_steps):
    with pytest.raises(T2TError, match=f"is at step 4 already, and train_steps is {train_steps}: give a lar"):
        check_unfinished(finished, train_steps, 2)


def test_something_is_left(finished, tmp_path):
    check_unfinished(finished, 5, 2)
    check_unfinished(tmp_path / "nothing there", 4, 2)
    (finished / "dev.csv").unlink()
    check_unfinished(finished, 4, 2)


def test_a_damaged_checkpoint_is_the_trainings_affair(finished):
    path = finished / "model.ckpt-4.npz"
    path.write_bytes(path.read_bytes()[:-30])
    check_unfinished(finished, 4, 2)


def test_it_needs_no_tensorflow():
    """Nor does anything else that t2t-trainer imports before it."""
    code = (
        "import sys\n"
        "from t2t_revival.cli import trainer\n"
        "from t2t_revival.training import finished, run\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'tensorflow', 'keras', 'jax'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
