"""Commands that process the files of a running training wait for the next one."""

import re
import time

import pytest

from t2t_revival.cli.support import wait_flags
from tests.support.processes import run_command

SHORT = "--decode_hparams=beam_size=1,extra_length=1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("t2t-avg-all --model_dir=out --n=2 --wait_minutes=1", "step 8: "),
        ("t2t-eval --output_dir=out --eval_bleu_sentences=0 --eval_timeout_mins=1", "^ +7 .*\n +8 "),
        (f"t2t-translate-all --model_dir=out --source=in --wait_minutes=1 {SHORT}", "steps 7 to 8"),
        ("t2t-bleu --translations_dir=all --reference=in --wait_minutes=1", "^ +7 .*\n +8 "),
    ],
)
def test_it_waits(words, found, out, tmp_path, monkeypatch, capsys, write_checkpoint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all").mkdir()
    for name in ("in", "all/ende-7"):
        (tmp_path / name).write_text("the dog sees houses\n")
    times = [time.time()]

    def sleep(seconds):
        times.append(times[-1] + seconds)
        if len(times) == 2:
            write_checkpoint(out, 8)
            (tmp_path / "all" / "ende-8").write_text("the dog sees\n")

    monkeypatch.setattr(wait_flags, "now", lambda: times[-1])
    monkeypatch.setattr(wait_flags, "sleep", sleep)
    assert run_command(*words.split()) == 0
    said = capsys.readouterr()
    assert re.search(found, said.out, re.MULTILINE)
    assert re.search(r"waiting for a (checkpoint|translation) in (out|all) until \d\d:\d\d:\d\d", said.err)
    assert times[-1] - times[0] == pytest.approx(60, abs=15)
