"""The parts of benchmarks/train_speed.py that train nothing: batches and conversation."""

import sys
import time
from pathlib import Path

import marian
import numpy as np
import pytest
import train_speed
from hypothesis import given
from hypothesis import strategies as st
from peers import batches as maker
from peers.processes import ContestantError, Entry, Process, training_command

PEERS = Path(train_speed.__file__).parent / "peers"
FIELDS = (
    "hidden_size filter_size heads vocab_size max_length dropout inner_dropout label_smoothing "
    "learning_rate_constant learning_rate_warmup_steps seed"
)
FAKE = """
from contestant import Contestant, serve
serve(lambda config, batches: Contestant("fake", config.layers, lambda: 2.5, lambda batch: 3.0))
"""
MARIAN = """
import itertools, sys, time
for update in itertools.count(1):
    time.sleep(0.02)
    print(f"Up. {update} : Cost 9.0 * 7 @ 7 after {700 * update:,} : Time 1s", file=sys.stderr, flush=True)
"""
OPTIONS = {"warmup": 1, "windows": 2, "steps": 1, "loss_steps": 0, "patience": 0.0}


def pair(source: int, target: int) -> maker.Pair:
    return [*range(2, source + 1), 1], [*range(2, target + 1), 1]


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=40),
    st.integers(12, 60),
    st.integers(0, 9),
)
def test_an_epoch_holds_every_pair_once_in_batches_within_the_limit(lengths, tokens, seed):
    pairs = [pair(*two) for two in lengths]
    stream = maker.token_batches(pairs, tokens, np.random.default_rng(seed))
    seen: list[maker.Pair] = []
    while len(seen) < len(pairs):
        batch = next(stream)
        rows, width = len(batch.inputs), max(ids.shape[1] for ids in batch)
        assert rows * width <= tokens
        assert batch.target_tokens == np.count_nonzero(batch.targets)
        seen += [
            ([i for i in source if i], [i for i in target if i])
            for source, target in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True)
        ]
    assert sorted(seen) == sorted(pairs)


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PEERS))
    train, held_out = (
        [maker.Batch(np.ones((1, 2), int), np.ones((1, n), int)) for n in ns] for ns in ((4, 5, 6), (2,))
    )
    maker.write_batches(tmp_path / "b.npz", train, held_out)

    def process(source: str) -> Process:
        script = tmp_path / "fake.py"
        script.write_text(source)
        entry = Entry(str(script), "python", "json", "float32")
        config = {**dict.fromkeys(FIELDS.split(), 1), "layers": 7}
        command = training_command(entry, sys.executable, config, tmp_path / "b.npz")
        return Process(command, tmp_path / "log")

    return process


def test_contestants_take_turns_and_report_tokens_and_loss(start):
    process = start(FAKE)
    try:
        result = train_speed.compete({"fake": process}, **OPTIONS)["fake"]
    finally:
        process.stop()
    assert (result.name, result.parameters, result.trained_tokens) == ("fake", 7, 15)
    assert [w["target_tokens"] for w in result.windows] == [5, 6]
    assert result.loss == 3.0 / 2


def test_who_falls_over_says_why_and_is_left_out_of_the_results(start, capsys):
    with pytest.raises(ContestantError, match=r"ended with status 1(.|\n)*no luck"):
        start("raise ValueError('no luck')")
    process = start(FAKE.replace("lambda: 2.5", "lambda: 1 / 0"))
    assert train_speed.compete({"fake": process}, **OPTIONS) == {}
    assert "fake: dropped: ZeroDivisionError: division by zero" in capsys.readouterr().err


def test_marian_trains_whole_updates_and_stands_still_between_its_windows(monkeypatch):
    monkeypatch.setattr(marian, "COMMAND", (sys.executable, "-c", MARIAN))
    training = marian.Training([])
    try:
        time.sleep(0.2)
        window = training.window(1500)
    finally:
        training.end()
    assert (window["target_tokens"], training.tokens) == (2100, 2800)
    assert window["seconds"] > 0.03
    monkeypatch.setattr(marian, "COMMAND", (sys.executable, "-c", "raise SystemExit('Error: no luck')"))
    with pytest.raises(RuntimeError, match="Marian ended Error: no luck"):
        marian.Training([])


def test_those_that_a_contestant_has_started_are_stopped_with_it(start):
    child = "import subprocess\nchild = subprocess.Popen(['sleep', '99'])\n"
    process = start(child + FAKE.replace("config.layers", "child.pid"))
    state = Path(f"/proc/{process.description['parameters']}/stat")
    assert state.exists()
    process.stop()
    end = time.monotonic() + 5
    while state.exists() and ") Z" not in state.read_text():
        assert time.monotonic() < end, "it still runs"
