"""`t2t-distill`: the commands that it runs, what they share, and its workers."""

import shlex

import pytest

from t2t_revival import Translator
from t2t_revival.cli import distill

pytestmark = pytest.mark.slow

DECODE = "beam_size=2,extra_length=2"


def run(*flags):
    return distill.main(["t2t-distill", *map(str, flags)])


def test_workers_only_decode(out, tmp_path, capsys):
    folder = tmp_path / "it's shared"
    flags = [f"--teacher={out}", f"--distilled_dir={folder}", "--decode_shards=2", "--worker_id=1"]
    assert run(*flags, "--nearest", f"--decode_hparams={DECODE}") == 0
    said = capsys.readouterr().err
    words = shlex.split(said[said.index("next, when all 2 workers are done: ") :].partition(": ")[2])
    flags = distill.main.parse(words)
    assert (flags.distilled_dir, flags.nearest, flags.teacher) == (str(folder), True, (str(out),))
    assert "worker_id" not in flags.given
    (decoded,) = (folder / "decoded").glob("*.outputs")
    assert len(decoded.read_text(encoding="utf-8").splitlines()) == 40


def test_a_teacher_may_decode_with_ctranslate2(out, tmp_path):
    pytest.importorskip("ctranslate2")
    flags = [f"--teacher={out}", f"--distilled_dir={tmp_path / 'd'}", f"--decode_hparams={DECODE}"]
    assert run(*flags, "--worker_id=0", "--teacher_engine=ctranslate2") == 0
    inputs, outputs = (
        (tmp_path / "d" / "decoded" / f"00000.{kind}").read_text(encoding="utf-8").splitlines()
        for kind in ("inputs", "outputs")
    )
    assert outputs == Translator.load(out, decode_hparams=DECODE, engine="ctranslate2").translate(inputs)
    assert len(outputs) == 40
