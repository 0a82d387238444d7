"""`t2t-trainer --train_minutes`: a training of a given time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, cycle
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from t2t_revival import registration
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import StoredWeights
from t2t_revival.hparams.hparams import OF_LENGTH, HParams
from t2t_revival.model_folder import ModelFolder
from t2t_revival.training import trainer
from t2t_revival.training.optimizer import falls_to_zero
from t2t_revival.training.trainer import Trainer
from tests.cli.trainer_command import SMALL, train
from tests.support.line_corpus import write_corpus

pytestmark = pytest.mark.slow

FALLING = "learning_rate_schedule=constant*linear_warmup*single_cycle_cos_decay,learning_rate_constant=0.01"
HPARAMS = f"{SMALL.replace(',train_steps=4', '')},{FALLING},learning_rate_warmup_steps="


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a small corpus."""
    corpus = write_corpus(tmp_path_factory.mktemp("corpus"), train=200, dev=10)
    folder, run = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("run")
    assert train(folder, run, f"--data_source={corpus}", "--vocab_size=310", "--train_steps=1") == 0
    return folder


def test_it_is_a_training_of_so_many_updates(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    timed, counted = tmp_path / "timed", tmp_path / "counted"
    assert train(data, timed, "--train_minutes=0.3", hparams=f"{HPARAMS}2000") == 0
    said, chosen = capsys.readouterr(), ModelFolder(timed).hparams
    steps, warmup = chosen.train_steps, chosen.learning_rate_warmup_steps
    assert warmup == max(1, steps // 5)
    assert f"train_minutes=0.3: {steps:,} updates, warm-up {warmup:,}" in said.err
    assert "the learning rate has fallen to 0" in said.out
    assert "next: t2t-decoder" in said.out
    assert train(data, counted, f"--train_steps={steps}", hparams=f"{HPARAMS}{warmup}") == 0
    newest = f"model.ckpt-{steps}.npz"
    one, other = (StoredWeights(folder / newest) for folder in (timed, counted))
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)


def test_it_keeps_its_length_when_it_resumes(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same command, whose own warm-up is longer than the whole training."""
    assert train(data, tmp_path, "--train_steps=6", "--local_eval_frequency=3", hparams=f"{HPARAMS}3") == 0
    checkpoints.list_checkpoints(tmp_path)[-1].path.unlink()
    assert train(data, tmp_path, "--train_minutes=5", hparams=f"{HPARAMS}2000") == 0
    chosen = ModelFolder(tmp_path).hparams
    assert (chosen.train_steps, chosen.learning_rate_warmup_steps) == (6, 3)
    assert "the training keeps its 6 updates" in capsys.readouterr().err


@pytest.mark.parametrize(("seconds", "most"), [(10.0, 5), (0.1, 210)])
def test_a_slow_machine_measures_few_updates(seconds: float, most: int, monkeypatch: Any) -> None:
    """The first one traces the step for 20 s more."""
    clock = [0.0]

    def steps(batches: object, is_due: Callable[[int], bool]) -> Iterator[None]:
        for pending in chain([1], cycle(range(1, 6))):
            clock[0] += seconds if clock[0] else 20 + seconds
            if is_due(pending):
                yield

    engine: Any = Mock(steps=steps, all_reduce_max=int)
    monkeypatch.setattr(trainer.time, "monotonic", lambda: clock[0])
    for name in ("_new_model", "_batches"):
        monkeypatch.setattr(Trainer, name, Mock())
    found = Trainer(Mock(), HParams(), Mock(), engine).lasting(30).hparams.train_steps
    assert clock[0] <= 20 + most * seconds
    assert found == pytest.approx((0.93 * 1800 - clock[0] - 20) / seconds, rel=0.01)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant*linear_warmup*single_cycle_cos_decay", (100, 20, 80)),
        ("constant*linear_warmup*linear_decay", (100, 20, 80)),
        ("constant*linear_warmup*usr_falling", (100, 20, 80)),
        ("constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size", (100, 4000, 5000)),
    ],
)
def test_a_schedule_that_falls_to_0_is_as_long_as_the_training(
    schedule: str, expected: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"usr_falling": lambda step, hparams: 1 - step / hparams.train_steps}
    monkeypatch.setattr(registration, "SCHEDULE_FACTORS", registration.SCHEDULE_FACTORS | own)
    hparams = HParams(learning_rate_schedule=schedule)
    hparams = hparams.of_length(100, falls_to_zero(hparams))
    assert tuple(getattr(hparams, name) for name in OF_LENGTH) == expected
