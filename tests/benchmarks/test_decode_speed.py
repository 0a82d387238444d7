"""benchmarks/decode_speed.py: the order of outputs, a contestant that falls over, and a run with its file."""

import json
import sys
from pathlib import Path

import decode_speed
import decoding
import pytest

MODEL = Path(__file__).parents[1] / "contract" / "models" / "pieces"
FLAGS = ["--models=a=x,b=y", "--inputs=x", "--references=y"]


def test_outputs_come_back_in_the_order_of_their_lines():
    asked = []

    def ask(lines):
        asked.append(lines)
        return [line.upper() for line in lines]

    lines = ["a", "bb", "", "dddd", "ccc"]
    assert decoding.in_batches(lines, 2, 1, ask) == ["A", "BB", "", "DDDD", "CCC"]
    assert asked == [["dddd", "ccc"], ["bb", "a"], [""]]


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
    args = decode_speed.parse_flags(FLAGS)
    competition = decode_speed.Competition({}, args, tmp_path, num_parallel_batches=1)
    competition.processes = {"a": Falling(1), "b": Falling(9)}
    assert [sorted(competition.round(number, "go 8")) for number in range(3)] == [["a", "b"], ["b"], ["b"]]
    assert "a, go 8: dropped: ended with status -11" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.nightly
def test_a_run_and_its_file(tmp_path, monkeypatch):
    (tmp_path / "lines").write_text("the dog sleeps\na cat\n" * 8)
    flags = [f"--models=a={MODEL}", f"--inputs={tmp_path / 'lines'}", f"--references={tmp_path / 'lines'}"]
    names = ["t2t-decoder-greedy", "saved_model-float32", "ctranslate2-int8"]
    flags += [f"--contestants={','.join(names)}", "--rounds=1"]
    out = tmp_path / "speed.json"
    monkeypatch.setattr(sys, "argv", ["x", *flags, "--batch_sizes=4", "--singles=2", f"--out={out}"])
    assert decode_speed.main() == 0
    found = json.loads(out.read_text())
    assert len(found["commit"]) == 40
    assert found["cpus"] >= 1
    assert [result["name"] for result in found["results"]] == names
    for result in found["results"]:
        assert [window["sentences"] for window in result["windows"]["4"]] == [16]
        assert len(result["milliseconds"]) == 2
