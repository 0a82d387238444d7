"""The parts of benchmarks/decode_speed.py that translate nothing."""

import decode_speed

FLAGS = ["--models=a=x,b=y", "--inputs=x", "--references=y"]


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
