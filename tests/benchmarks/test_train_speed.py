"""The parts of benchmarks/train_speed.py that train nothing: batches, conversation, table."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
import train_speed  # noqa: E402
from peers import batches as maker  # noqa: E402
from peers.processes import (  # noqa: E402
    ContestantError,
    Entry,
    Process,
    Window,
    missing,
    training_command,
)

FIELDS = (
    "layers",
    "hidden_size",
    "filter_size",
    "heads",
    "vocab_size",
    "max_length",
    "dropout",
    "inner_dropout",
    "label_smoothing",
    "learning_rate_constant",
    "learning_rate_warmup_steps",
    "seed",
)
FAKE = """
from contestant import Contestant, serve
serve(lambda config, batches: Contestant("fake", config.layers, lambda: 2.5, lambda batch: 3.0))
"""


def pair(source: int, target: int) -> maker.Pair:
    return [*range(2, source + 1), 1], [*range(2, target + 1), 1]


@settings(max_examples=30, deadline=None)
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
        seen += [
            ([i for i in source if i], [i for i in target if i])
            for source, target in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True)
        ]
    assert sorted(seen) == sorted(pairs)


def test_a_batch_is_padded_with_zeros_on_the_right_and_counts_its_target_tokens():
    batch = next(maker.token_batches([pair(2, 4), pair(3, 4)], 8, np.random.default_rng(0)))
    np.testing.assert_array_equal(batch.inputs, [[2, 1, 0], [2, 3, 1]])
    np.testing.assert_array_equal(batch.targets, [[2, 3, 4, 1], [2, 3, 4, 1]])
    assert batch.target_tokens == 8


def test_epochs_differ_and_a_seed_decides_them():
    pairs = [pair(n, n) for n in range(2, 12)]

    def first(seed: int) -> list[list[int]]:
        stream = maker.token_batches(pairs, 11, np.random.default_rng(seed))
        return [batch.inputs.shape[1] for batch in itertools.islice(stream, 20)]

    assert first(3) == first(3)
    assert first(3)[:10] != first(3)[10:]


@pytest.mark.parametrize("pairs", [[], [pair(5, 9)]])
def test_no_pairs_or_a_pair_longer_than_a_batch_is_refused(pairs):
    with pytest.raises(ValueError, match="cannot make batches of 8 tokens"):
        next(maker.token_batches(pairs, 8, np.random.default_rng(0)))


def test_written_batches_come_back_in_their_order(tmp_path):
    stream = maker.token_batches([pair(n, n + 1) for n in range(1, 30)], 30, np.random.default_rng(0))
    train, held_out = list(itertools.islice(stream, 12)), [next(stream)]
    maker.write_batches(tmp_path / "b.npz", train, held_out)
    for wrote, read in zip((train, held_out), maker.read_batches(tmp_path / "b.npz"), strict=True):
        for a, b in zip(wrote, read, strict=True):
            np.testing.assert_array_equal(a.inputs, b.inputs)
            np.testing.assert_array_equal(a.targets, b.targets)


def test_synthetic_pairs_end_with_eos_keep_the_limit_and_follow_the_seed():
    pairs = maker.synthetic_pairs(300, max_length=40, seed=5)
    sides = [side for two in pairs for side in two]
    assert all(side[-1] == maker.EOS and 2 <= len(side) <= 40 for side in sides)
    assert all(maker.FIRST_TOKEN <= token < maker.SYNTHETIC_VOCAB for side in sides for token in side[:-1])
    assert pairs == maker.synthetic_pairs(300, max_length=40, seed=5)
    assert pairs != maker.synthetic_pairs(300, max_length=40, seed=6)


def write_corpus(folder: Path, english: str, german: str) -> None:
    (folder / "train.en").write_text(english)
    (folder / "train.de").write_text(german)


def test_ids_are_read_with_eos_and_long_pairs_are_left_out(tmp_path):
    write_corpus(tmp_path, "t17 t2\nt5 t6 t7\n", "t9\nt3\n")
    assert maker.read_ids(tmp_path, max_length=3) == [([17, 2, 1], [9, 1])]


@pytest.mark.parametrize(
    ("english", "german", "message"),
    [
        ("t2\nt3\n", "t2\n", "train.en has 2 lines, train.de 1"),
        ("t2\nt4 1\n", "t2\nt2\n", "train.en:2: '1' is not a token such as t17"),
        ("t2\n", "t1\n", "train.de:1: 't1' is not a token"),
    ],
)
def test_a_bad_ids_folder_is_refused_with_its_place(tmp_path, english, german, message):
    write_corpus(tmp_path, english, german)
    with pytest.raises(ValueError, match=message):
        maker.read_ids(tmp_path, max_length=10)


def window(tokens: float, seconds: float, others: float = 0.0) -> Window:
    return {"target_tokens": tokens, "seconds": seconds, "peak_rss_mb": 1500.4, "others_cpus": others}


def results() -> dict[str, train_speed.Result]:
    ours = [window(3000, 0.5), window(3000, 1.0, others=0.9), window(3000, 0.6)]
    onmt = [window(3000, 1.0), window(3000, 2.0), window(3000, 1.0)]
    return {
        "ours-float32": train_speed.Result("Ours", 10, ours, loss=4.5, trained_tokens=9000),
        "opennmt-float32": train_speed.Result("Theirs", 10, onmt, loss=4.25, trained_tokens=9000),
    }


def test_the_table_has_medians_spread_and_ratios_of_the_same_round():
    lines = train_speed.table(results()).splitlines()
    assert lines[2] == (
        "| ours-float32: Ours | 5,000 (3,000-6,000) | 2.00 |  | 1,500 | 4.500 (9,000) | 0.90 |"
    )
    assert lines[3] == (
        "| opennmt-float32: Theirs | 3,000 (1,500-3,000) | 1.00 |  | 1,500 | 4.250 (9,000) | 0.00 |"
    )
    assert len({line.count("|") for line in lines}) == 1


def test_a_disturbed_run_is_called_so():
    both = results()
    assert "in 1 of 6 windows" in (train_speed.disturbed(both.values()) or "")
    assert train_speed.disturbed([both["opennmt-float32"]]) is None


def test_what_is_missing_is_named():
    assert "--onmt_python is missing" in (missing("onmt_python", "opennmt", None) or "")
    assert "No such file" in (missing("onmt_python", "opennmt", "/nowhere/python") or "")
    absent = missing("python", "no_such_module", sys.executable)
    assert "No module named 'no_such_module'" in (absent or "")
    assert missing("python", "json", sys.executable) is None


def test_unknown_sizes_and_contestants_are_refused(capsys):
    with pytest.raises(SystemExit):
        train_speed.parse_flags(["--sizes=huge"])
    assert "unknown: huge; known: small, base" in capsys.readouterr().err


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS / "peers"))
    (train, held_out) = (
        [maker.Batch(np.ones((1, 2), int), np.ones((1, n), int)) for n in ns] for ns in ((4, 5, 6), (2,))
    )
    maker.write_batches(tmp_path / "b.npz", train, held_out)
    fields = dict.fromkeys(FIELDS, 1)

    def process(source: str) -> Process:
        script = tmp_path / "fake.py"
        script.write_text(source)
        entry = Entry(str(script), "python", "json", "float32")
        config = {**fields, "layers": 7}
        command = training_command(entry, sys.executable, config, tmp_path / "b.npz")
        return Process(command, tmp_path / "log")

    return process


def test_contestants_take_turns_and_report_tokens_and_loss(start):
    process = start(FAKE)
    try:
        options = {"warmup": 1, "windows": 2, "steps": 1, "loss_steps": 0, "patience": 0.0}
        result = train_speed.compete({"fake": process}, **options)["fake"]
    finally:
        process.stop()
    assert (result.name, result.parameters) == ("fake", 7)
    assert [w["target_tokens"] for w in result.windows] == [5, 6]
    assert result.trained_tokens == 15
    assert result.loss == 3.0 / 2


def test_a_contestant_that_falls_over_while_starting_says_why(start):
    with pytest.raises(ContestantError, match=r"ended with status 1(.|\n)*no luck"):
        start("raise ValueError('no luck')")


def test_a_contestant_that_falls_over_in_a_window_is_left_out_of_the_results(start, capsys):
    process = start(FAKE.replace("lambda: 2.5", "lambda: 1 / 0"))
    options = {"warmup": 1, "windows": 2, "steps": 1, "loss_steps": 0, "patience": 0.0}
    assert train_speed.compete({"fake": process}, **options) == {}
    assert "fake: dropped: ZeroDivisionError: division by zero" in capsys.readouterr().err
