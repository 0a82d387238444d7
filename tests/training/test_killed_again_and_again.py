"""A training that is killed again and again ends as one that nobody disturbs, bit for bit."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import weights_of
from t2t_revival.checkpoints.selection import list_best
from t2t_revival.curve_files import DEV, read_curve
from tests.support.line_corpus import snapshot, write_corpus
from tests.support.processes import Process, start_command

SIZES = "num_hidden_layers=1,hidden_size=32,filter_size=64,num_heads=2,batch_size=512"
STEPS, EVALUATED = 300, 20
MOMENTS = {  # the file whose appearance begins each, and the seconds within which the kill follows
    "making data": ("data/*-train-*", 0.0),
    "writing a checkpoint": ("model/.model.ckpt-*.npz.tmp", 0.0),
    "evaluating": ("model/model.ckpt-*[02468]0.npz", 0.3),
    "any time": ("", 3.0),
}


def start(place: Path) -> Process:
    """Starts or resumes the training, which also makes its data."""
    flags = {
        "problem": "translate_ende",
        "hparams_set": "tiny",
        "hparams": f"{SIZES},layer_prepostprocess_dropout=0.1,learning_rate_warmup_steps=50",
        "data_source": place.parent / "corpus",
        "vocab_size": 330,
        "data_dir": place / "data",
        "output_dir": place / "model",
        "train_steps": STEPS,
        "local_eval_frequency": EVALUATED,
        "save_checkpoints_secs": 1,
        "keep_best": 2,
        "eval_bleu_sentences": 0,
    }
    return start_command(place, "t2t-trainer", *(f"--{name}={value}" for name, value in flags.items()))


def kill(place: Path, moment: str, draw: random.Random) -> bool:
    """Starts or resumes the training, and kills it at a moment; returns whether it had not ended before."""
    pattern, seconds = MOMENTS[moment]
    before = {*place.glob(pattern)} if pattern else set()
    process = start(place)
    while pattern and process.poll() is None and before.issuperset(place.glob(pattern)):
        time.sleep(0.0005)
    time.sleep(draw.uniform(0, seconds))
    process.kill()
    return ended(process) == -signal.SIGKILL


def ended(process: Process) -> int:
    """Waits for the end of a training; returns the exit status."""
    status = process.wait()
    assert status in (0, -signal.SIGKILL) or f"is already at step {STEPS}" in process.err, process.said
    return status


def outcome(place: Path) -> dict[str, Any]:
    """All that two trainings have in common, by name."""
    out = place / "model"
    arrays, meta = checkpoints.load(checkpoints.list_checkpoints(out)[-1].path)
    del meta["seen"]["seconds"]
    rows = read_curve(out, DEV)
    return {
        **snapshot(place / "data"),
        **{name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()},
        **meta,
        "dev": [{name: row[name] for name in row if name != "seconds"} for row in rows],
        "best": [(kept.step, weights_of(kept.path)) for kept in list_best(out)],
    }


@pytest.mark.slow
@pytest.mark.nightly
def test_the_result_is_that_of_an_undisturbed_training(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", train=4000)
    start(tmp_path / "whole").end()
    expected = outcome(tmp_path / "whole")
    assert [row["step"] for row in expected["dev"]] == [*range(EVALUATED, STEPS + 1, EVALUATED)]

    place, draw = tmp_path / "killed", random.Random(1)
    first, *others = MOMENTS
    assert {moment for moment in (first, *others * 4) if kill(place, moment, draw)} == {*MOMENTS}
    ended(start(place))
    found = outcome(place)
    assert [name for name in sorted({*expected, *found}) if expected.get(name) != found.get(name)] == []
    assert not [*place.rglob("*.damaged")]
