"""`t2t-distill`: the commands that it runs, what they share, and its workers."""

import shlex

import pytest

from t2t_revival import HParams, Translator, registry
from t2t_revival.cli import distill
from t2t_revival.training.run import Run, save_run
from t2t_revival.utils import checked_json

pytestmark = pytest.mark.slow

DECODE = "beam_size=2,extra_length=2"
SMALL = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2, max_length=30)


def run(*flags):
    return distill.main(["t2t-distill", *map(str, flags)])


class Commands:
    """Runs t2t-distill here; of t2t-trainer, writes the files. Keeps the names and flags of both."""

    def __init__(self, write_checkpoint):
        self.asked, self.fail_at = [], ""
        self._write_checkpoint = write_checkpoint

    def __call__(self, name, flags):
        self.asked.append((name, dict(flags)))
        if name == self.fail_at:
            raise KeyboardInterrupt
        if name == "t2t-distill":
            assert run(*(f"--{flag}={value}" for flag, value in flags.items())) == 0
        else:
            self._train(flags["output_dir"], flags["hparams_set"], flags["data_dir"])

    def _train(self, output_dir, hparams_set, data_dir):
        vocabulary = registry.problem("translate_ende").vocabulary(data_dir)
        place, name = str(data_dir.resolve()), vocabulary.path.name
        settings = Run("translate_ende", hparams_set, place, name, vocabulary.fingerprint, {})
        save_run(output_dir, settings, SMALL, vocabulary.path)
        self._write_checkpoint(output_dir, 3)
        (output_dir / "dev.csv").write_text("step,target_tokens,loss\n3,1,2\n")


def test_steps_resume_and_students_share_the_outputs(out, tmp_path, write_checkpoint, monkeypatch, capsys):
    commands = Commands(write_checkpoint)
    monkeypatch.setattr(distill, "run_command", commands)
    student, shared = tmp_path / "student", tmp_path / "shared"
    decoding = [f"--teacher={out}", f"--distilled_dir={shared}", f"--decode_hparams={DECODE}"]
    flags = [*decoding, "--hparams_set=student_tiny", f"--output_dir={student}", "--train_steps=3"]
    more = ["--nearest", "--hparams=batch_size=512", "--noxla"]
    commands.fail_at = "t2t-trainer"
    assert run(*flags, *more) == 130
    decoded = {"teacher": str(out), "decode_hparams": DECODE, "nearest": True, "distilled_dir": shared}
    trained = {
        "problem": "translate_ende",
        "data_dir": shared / "outputs" / "data",
        "output_dir": student,
        "hparams_set": "student_tiny",
        "hparams": "batch_size=512",
        "train_steps": 3,
        "xla": False,
    }
    assert commands.asked == [("t2t-distill", decoded | {"worker_id": 0}), ("t2t-trainer", trained)]
    assert "40 training pairs of 40 sources" in capsys.readouterr().err

    commands.fail_at = ""
    assert run(*flags, *more) == 0
    assert commands.asked[2:] == [("t2t-trainer", trained)]
    assert (student / "distillation.md").read_text() in capsys.readouterr().out
    assert (student / "averaged" / "model.ckpt-3.npz").exists()
    models = checked_json.load(student / "distillation.json", "")["models"]
    assert models["teacher"].startswith("model.ckpt-7.npz with weights ")
    assert models["student"].startswith("average model.ckpt-3.npz with weights ")

    other = [*decoding, "--nearest", "--hparams_set=student_base", f"--output_dir={tmp_path / 'other'}"]
    commands.fail_at = "t2t-trainer"
    assert run(*other, "--train_steps=3", "--original_targets") == 130
    assert [name for name, _ in commands.asked[3:]] == ["t2t-trainer"]
    assert "80 training pairs of 40 sources" in capsys.readouterr().err
    for wrong, fault in (
        (["--nearest", "--original_targets"], f"{student} holds a model trained on {shared / 'outputs'}"),
        ([], "shared holds outputs with nearest=True, not False: give another --distilled_dir"),
    ):
        assert run(*flags, *wrong) == 1
        assert fault in capsys.readouterr().err.splitlines()[-1]


def test_workers_only_decode(out, tmp_path, capsys):
    folder = tmp_path / "it's shared"
    flags = [f"--teacher={out}", f"--distilled_dir={folder}", "--decode_shards=2", "--worker_id=1"]
    assert run(*flags, "--nearest", f"--decode_hparams={DECODE}") == 0
    said = capsys.readouterr().err
    words = shlex.split(said[said.index("next, when all 2 workers are done: ") :].partition(": ")[2])
    values = distill.command_flags()
    assert values(words) == ["t2t-distill"]
    assert (values.distilled_dir, values.nearest, values.teacher) == (str(folder), True, [str(out)])
    assert not values["worker_id"].present
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
