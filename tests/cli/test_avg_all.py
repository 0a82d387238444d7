"""`t2t-avg-all --model_dir`: an average for each checkpoint, in an output_dir of its own."""

import threading
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest

from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.model_folder import Run
from t2t_revival.utils.files import exclusive_lock
from tests.cli.conftest import failure
from tests.support.processes import run_command

run = partial(run_command, "t2t-avg-all")


def weights(path):
    arrays, _ = checkpoints.load(path, prefixes=("model/",))
    return {name: array for name, array in arrays.items() if array.dtype.kind == "f"}


def test_the_last_of_each_checkpoint(out, tmp_path, capsys, write_checkpoint):
    for step in (9, 11):
        write_checkpoint(out, step)
    folder = tmp_path / "avg"
    assert run(f"--model_dir={out}", f"--output_dir={folder}", "--n=2") == 0
    shown = capsys.readouterr().out
    assert f"step 9: {folder / 'model.ckpt-9.npz'}\nstep 11: " in shown
    assert f"2 averages of 2 checkpoints\nnext: t2t-eval --output_dir={folder}" in shown
    assert [checkpoint.step for checkpoint in checkpoints.list_checkpoints(folder)] == [9, 11]
    averaged = weights(folder / "model.ckpt-11.npz")
    parts = [weights(out / f"model.ckpt-{step}.npz") for step in (9, 11)]
    assert averaged.keys() == parts[0].keys()
    for name, array in averaged.items():
        np.testing.assert_allclose(array, (parts[0][name] + parts[1][name]) / 2, rtol=1e-6, atol=1e-7)
    assert run(f"--model_dir={out}", f"--output_dir={folder}", "--n=2") == 0
    assert "model.ckpt-11.npz, there already" in capsys.readouterr().out


def test_by_default_beside_the_checkpoints_and_as_many_as_the_hparams_say(out, capsys, write_checkpoint):
    for step in range(20, 30):
        write_checkpoint(out, step)
    assert run(f"--model_dir={out}", "--min_steps=20") == 0
    made = checkpoints.list_checkpoints(out / "avg")
    assert [len(checkpoints.load(c.path)[1]["averaged"]) for c in made] == [5] * 6
    assert Run.load(out / "avg") == Run.load(out)
    assert len(checkpoints.list_checkpoints(out)) == 11


@pytest.fixture
def changed(out, write_checkpoint):
    """Checkpoints without a record of their data (step 7) and of two kinds of data (later ones)."""
    for step, data in ((8, "aaaaaaaa"), (9, "bbbbbbbb"), (10, "bbbbbbbb")):
        write_checkpoint(out, step, data)
    return out


def test_training_data_is_mixed_where_that_is_asked_for(changed, capsys):
    assert run(f"--output_dir={changed}", "--n=3", "--mix_data", "--skip_scoring") == 0
    captured = capsys.readouterr()
    assert "averaged 3 checkpoints (steps 8, 9, 10)" in captured.out
    mixed = "warning: this average mixes training data: step 8 (aaaaaaaa), steps 9, 10 (bbbbbbbb)\n"
    assert captured.err == mixed
    averaged = weights(changed / "averaged" / "model.ckpt-10.npz")
    parts = [weights(changed / f"model.ckpt-{step}.npz") for step in (8, 9, 10)]
    for name, array in averaged.items():
        np.testing.assert_allclose(array, np.mean([part[name] for part in parts], axis=0), atol=1e-6)


def test_the_first_steps_are_left_out(changed, capsys):
    assert run(f"--output_dir={changed}", "--n=4", "--min_steps=10") == 0
    assert "averaged 1 checkpoint (steps 10)" in capsys.readouterr().out


def test_checkpoints_of_earlier_versions_are_averaged_and_that_is_said(out, capsys, write_checkpoint):
    write_checkpoint(out, 8)
    assert run(f"--output_dir={out}", "--n=2", "--skip_scoring") == 0
    captured = capsys.readouterr()
    assert "averaged 2 checkpoints (steps 7, 8)" in captured.out
    said = "these checkpoints do not name their training data: assumed to be the same"
    assert captured.err == f"warning: {said}\n"


def test_refusals(out, capsys):
    assert "fewer than 2 valid checkpoints" in failure(capsys, run(f"--model_dir={out}", "--n=2"))


def test_another_one_that_writes_there_is_waited_for(changed, tmp_path, capsys):
    folder, held = tmp_path / "avg", ExitStack()
    held.enter_context(exclusive_lock(folder, ""))
    threading.Timer(0.3, held.close).start()
    assert run(f"--model_dir={changed}", f"--output_dir={folder}", "--n=2") == 0
    assert f"{folder}: another t2t-avg-all is writing there; waiting until it ends" in capsys.readouterr().err
