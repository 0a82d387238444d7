"""The parts of benchmarks/decode_speed.py that translate nothing."""

import decode_speed
from decode_speed import BASELINE, Result
from peers.decoding_entries import entry_of

FLAGS = ["--models=a=x,b=y", "--inputs=x", "--references=y"]


def windows(*seconds):
    return [{"sentences": 100, "seconds": s, "peak_rss_mb": 500.0} for s in seconds]


def test_the_table_has_medians_spread_and_ratios_of_the_same_round():
    ours = Result({8: windows(1.0, 0.5, 2.0)}, [10.0, 20.0, 30.0], 39.153, 1300)
    theirs = Result({8: windows(0.5, 0.5, 1.0)}, [5.0], 38.5, 1200)
    row, baseline = decode_speed.table({"t2t-decoder": ours, BASELINE: theirs}, [8]).splitlines()[2:]
    assert row == "| t2t-decoder | 100 (50-200), x 0.50 | 1,300 | 20.0 / 29.0 / 29.8 | 500 | 39.15 |"
    assert "200 (100-200) | 2,400 | 5.0" in baseline


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


def test_names_of_contestants_say_how_they_export_and_decode():
    names = "ctranslate2-float32,b/saved_model-int8-greedy-shortlist"
    args = decode_speed.parse_flags([*FLAGS, f"--contestants={names}"])
    assert set(args.entries) == {"a/ctranslate2-float32", "b/ctranslate2-float32", names.split(",")[1]}
    exported = entry_of("saved_model-int8-greedy-shortlist").export
    assert exported[-2:] == ("--quantize=int8", "--decode_hparams=beam_size=1,shortlist=on")
    options = {"compute_type": "int8", "beam_size": 1, "use_vmap": True}
    assert entry_of("ctranslate2-int8-greedy-shortlist").options == options
    assert entry_of("t2t-decoder-early").options == {"decode_hparams": "early_stopping=True"}
