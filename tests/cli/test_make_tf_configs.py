"""`t2t-make-tf-configs`: a TF_CONFIG for each machine, and wrong addresses."""

import json
import shlex

import pytest

from t2t_revival.cli.make_tf_configs import main


def test_a_line_for_each_machine(capsys):
    assert main(["t2t-make-tf-configs", "--masters=one.example:2222,[::1]:2223"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert len(lines) == 2
    for index, line in enumerate(lines):
        (word,) = shlex.split(line)
        name, _, value = word.partition("=")
        assert name == "TF_CONFIG"
        config = json.loads(value)
        assert config["cluster"] == {"worker": ["one.example:2222", "[::1]:2223"]}
        assert config["task"] == {"type": "worker", "index": index}
    assert "next: t2t-trainer --strategy=multi_worker" in captured.err


PARAMETER_SERVERS = [
    ("10.0.0.1:5555", "10.0.0.2:5555,10.0.0.3:5555", ["10.0.0.2:5555", "10.0.0.3:5555"], "add 10.0.0.1:5555"),
    ("", "[::1]:1,[::1]:2", ["[::1]:1", "[::1]:2"], "synchronously on the machines in --ps"),
    ("one:1,two:1", "three:1", ["one:1", "two:1"], "asynchronously"),
]


@pytest.mark.parametrize(("masters", "ps", "workers", "remark"), PARAMETER_SERVERS)
def test_parameter_servers_are_answered_with_the_command_for_the_same_machines(
    masters, ps, workers, remark, capsys
):
    """The first and the last as in T2T's document on distributed training: sync, async."""
    assert main(["t2t-make-tf-configs", f"--masters={masters}", f"--ps={ps}"]) == 1
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert captured.out == ""
    assert remark in line
    command = shlex.split(line[line.index(": t2t-make-tf-configs") + 2 :].partition(" (")[0])
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    configs = [json.loads(shlex.split(line)[0].partition("=")[2]) for line in lines]
    assert [config["cluster"]["worker"] for config in configs] == [workers] * len(workers)
