"""The parts of benchmarks/decode_speed.py that translate nothing."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
import decode_speed  # noqa: E402
from decode_speed import BASELINE, Result  # noqa: E402
from peers.decoding_entries import entry_of  # noqa: E402


def windows(*seconds):
    return [{"sentences": 100, "seconds": s, "peak_rss_mb": 500.0} for s in seconds]


def test_the_table_has_medians_spread_and_ratios_of_the_same_round():
    ours = Result({1: windows(4.0), 8: windows(1.0, 0.5, 2.0)}, [10.0, 20.0, 30.0], 39.153, 1300)
    theirs = Result({1: windows(2.0), 8: windows(0.5, 0.5, 1.0)}, [5.0], 38.5, 1200)
    lines = decode_speed.table({"t2t-decoder": ours, BASELINE: theirs}, [1, 8]).splitlines()
    assert lines[2] == (
        "| t2t-decoder | 25 (25-25), x 0.50 | 100 (50-200), x 0.50 | 1,300 "
        "| 20.0 / 29.0 / 29.8 | 500 | 39.15 |"
    )
    assert lines[3] == f"| {BASELINE} | 50 (50-50) | 200 (100-200) | 2,400 | 5.0 / 5.0 / 5.0 | 500 | 38.50 |"
    assert len({line.count("|") for line in lines}) == 1


def test_who_was_left_out_has_an_empty_row():
    row = decode_speed.table({"t2t-decoder": Result()}, [8]).splitlines()[2]
    assert row == "| t2t-decoder |  |  | nan / nan / nan | 0 | nan |"


class Falling:
    """A contestant's process that answers a few times."""

    def __init__(self, answers):
        self.answers = answers

    def watched(self, command):
        if not self.answers:
            raise decode_speed.ContestantError("ended with status -11")
        self.answers -= 1
        return {"command": command}


def test_who_falls_over_is_left_out_and_the_others_go_on(capsys, tmp_path):
    args = decode_speed.parse_flags(["--models=a=b", "--inputs=x", "--references=y"])
    competition = decode_speed.Competition({}, args, tmp_path, num_parallel_batches=1)
    competition.processes = {"a": Falling(1), "b": Falling(9)}
    assert [sorted(competition.round(number, "go 8")) for number in range(3)] == [["a", "b"], ["b"], ["b"]]
    assert "a, go 8: dropped: ended with status -11" in capsys.readouterr().err


def test_names_of_models_and_modifiers():
    flags = ["--models=a=x,b=y", "--inputs=x", "--references=y"]
    names = "ctranslate2-float32,b/saved_model-int8-greedy-shortlist"
    args = decode_speed.parse_flags([*flags, f"--contestants={names}"])
    assert args.entries == {
        "a/ctranslate2-float32": ("a", "ctranslate2-float32"),
        "b/ctranslate2-float32": ("b", "ctranslate2-float32"),
        "b/saved_model-int8-greedy-shortlist": ("b", "saved_model-int8-greedy-shortlist"),
    }
    assert args.baseline == "a/ctranslate2-float32"
    exported = entry_of("saved_model-int8-greedy-shortlist").export
    assert exported[-2:] == ("--quantize=int8", "--decode_hparams=beam_size=1,shortlist=on")
    options = {"compute_type": "int8", "beam_size": 1, "use_vmap": True}
    assert entry_of("ctranslate2-int8-greedy-shortlist").options == options
    assert entry_of("t2t-decoder-early").options == {"decode_hparams": "early_stopping=True"}


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--models=small", "expected NAME=OUTPUT_DIR"),
        ("--contestants=fast", "unknown: fast; known: t2t-decoder"),
        ("--contestants=early", "unknown: early; known: t2t-decoder"),
        ("--contestants=b/t2t-decoder", "b/t2t-decoder: unknown model; known: a"),
        ("--contestants=ctranslate2-int8-early", "CTranslate2 always stops early"),
        ("--contestants=tensor2tensor-float32-greedy", "of which those without ids may end with -early"),
        ("--baseline=b", "b is none of t2t-decoder"),
    ],
)
def test_wrong_flags(capsys, flag, message):
    flags = ["--models=a=b", "--inputs=x", "--references=y"]
    with pytest.raises(SystemExit):
        decode_speed.parse_flags([*flags, flag])
    assert message in capsys.readouterr().err


def test_a_model_that_is_not_there(capsys, monkeypatch, tmp_path):
    flags = [f"--models=a={tmp_path / 'no'}", "--inputs=x", "--references=y"]
    monkeypatch.setattr(sys, "argv", ["decode_speed.py", *flags])
    assert decode_speed.main() == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")
