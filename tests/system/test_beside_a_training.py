"""Commands that look at a training while it goes on, and removes its old checkpoints."""

from __future__ import annotations

import csv
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2t_revival.checkpoints import directory as checkpoints
from tests.support.line_corpus import houses, write_pairs
from tests.support.processes import Process, start_command

pytestmark = pytest.mark.slow
SIZES = "num_hidden_layers=1,hidden_size=16,filter_size=16,num_heads=2,batch_size=512,max_length=64"
SENTENCES = 8


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """With a corpus."""
    pairs = {"train": houses(range(200)), "dev": houses(range(SENTENCES))}
    return write_pairs(tmp_path, pairs)


@pytest.fixture
def training(place: Path) -> Iterator[Process]:
    """One that goes on, writes a checkpoint each second or so, and keeps two."""
    process = start_command(
        place / "trainer",
        "t2t-trainer",
        "--problem=translate_ende",
        "--hparams_set=tiny",
        f"--hparams={SIZES}",
        f"--data_source={place}",
        "--vocab_size=290",
        f"--data_dir={place / 'data'}",
        f"--output_dir={place / 'model'}",
        "--train_steps=1000000",
        "--local_eval_frequency=0",
        "--save_checkpoints_secs=1",
        "--keep_checkpoint_max=2",
        "--log_step_count_steps=1000",
    )
    yield process
    process.kill()


def beside(place: Path, wait: int) -> dict[str, tuple[str, ...]]:
    """The commands that follow a training, and their flags."""
    model, translations = place / "model", place / "model" / "translations"
    return {
        "t2t-eval": (f"--output_dir={model}", f"--eval_timeout_mins={wait}", "--eval_bleu_sentences=2"),
        "t2t-avg-all": (f"--model_dir={model}", "--n=1", f"--wait_minutes={wait}"),
        "t2t-translate-all": (
            f"--model_dir={model}",
            f"--source={place / 'dev.en'}",
            "--decode_hparams=beam_size=1,extra_length=2",
            f"--wait_minutes={wait}",
        ),
        "t2t-bleu": (
            f"--translations_dir={translations}",
            f"--reference={place / 'dev.de'}",
            f"--event_dir={place / 'events'}",
            f"--wait_minutes={wait}",
        ),
    }


def decode(place: Path, source: str) -> Process:
    """A decoder that has the newest checkpoint."""
    return start_command(
        place / f"decoder of {source}",
        "t2t-decoder",
        f"--output_dir={place / 'model'}",
        f"--decode_from_file={place / source}",
        "--decode_hparams=beam_size=1,extra_length=2",
        f"--decode_to_file={place / 'decoded'}",
    )


HANDLED = {
    "t2t-eval": r"^ +(\d+) .*\d$",
    "t2t-avg-all": r"^step (\d+): ",
    "t2t-translate-all": r"^step (\d+): /",
    "t2t-bleu": r"^ +(\d+) .*translate_ende-\d+$",
}


def handled(name: str, said: str) -> list[int]:
    """The steps that a command has taken, in its order."""
    return [int(step) for step in re.findall(HANDLED[name], said, re.MULTILINE)]


def steps_there(place: Path) -> list[int]:
    return [checkpoint.step for checkpoint in checkpoints.list_checkpoints(place / "model")]


@pytest.mark.nightly
def test_they_take_each_checkpoint_once_stop_at_ctrl_c_and_go_on(place: Path, training: Process) -> None:
    training.wait_for(r"^step \d+  saved ")
    first = steps_there(place)
    running = {
        name: start_command(place / name, name, *flags) for name, flags in beside(place, wait=5).items()
    }
    for name, command in running.items():
        command.wait_for(HANDLED[name], times=2)
    (place / "long.en").write_text((place / "train.en").read_text(encoding="utf-8") * 200, encoding="utf-8")
    decoder = decode(place, "long.en")
    decoder.wait_for("^decoding with ")
    decoder.interrupt()
    assert not (place / "decoded").exists()
    decoder = decode(place, "dev.en")
    before = {name: handled(name, command.interrupt()) for name, command in running.items()}
    assert f"{SENTENCES} sentences" in decoder.end()
    assert len((place / "decoded").read_text(encoding="utf-8").splitlines()) == SENTENCES
    training.send_signal(signal.SIGINT)
    assert "next: the same command resumes from here" in training.end(130)
    there = steps_there(place)
    assert len(there) == 2
    assert not set(first) & set(there), "the training has removed the first ones meanwhile"

    after = {
        name: handled(name, start_command(place / f"{name} again", name, *flags).end())
        for name, flags in beside(place, wait=0).items()
    }
    for name, steps in before.items():
        assert steps == sorted(set(steps)), f"{name} takes each once, in order"
    assert after["t2t-eval"] == after["t2t-avg-all"] == after["t2t-translate-all"] == there
    scored = after["t2t-bleu"]
    assert scored == sorted(set(scored))
    assert min(scored) >= max(before["t2t-bleu"]), "the last before Ctrl-C may be said, but not yet noted"
    assert scored[-1] == there[-1]
    with (place / "model" / "eval-dev.csv").open(newline="") as file:
        rows = [int(row["step"]) for row in csv.DictReader(file)]
    averages = [checkpoint.step for checkpoint in checkpoints.list_checkpoints(place / "model" / "avg")]
    for name, done in (("t2t-eval", rows), ("t2t-avg-all", averages)):
        said = {*before[name], *there}
        unsaid = sorted({*done} - said)
        assert len(unsaid) <= 1, "the last before Ctrl-C may be done, but not yet said"
        assert all(step > max(before[name]) for step in unsaid)
        assert done == sorted({*said, *unsaid}), "each once; those of removed checkpoints stay"
