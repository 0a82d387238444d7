"""`t2t-distill`: its flags, its steps and its errors."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from t2t_revival import registry
from t2t_revival.cli import distill
from t2t_revival.decoding import trained_models
from t2t_revival.decoding.outputs import to_bytes
from t2t_revival.decoding.translator import Translator
from t2t_revival.distillation import comparison
from t2t_revival.distillation.teacher_outputs import TeacherOutputs, read_pairs
from t2t_revival.evaluation.decoded import SplitFiles
from t2t_revival.hparams import HParams
from t2t_revival.training.run import Run, save_run
from t2t_revival.utils import checked_json
from tests.support.command_lines import last_of_each

SMALL = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2, max_length=30)


def run(*flags):
    return distill.main(last_of_each(["t2t-distill", *map(str, flags)]))


def failure(capsys, status):
    captured = capsys.readouterr()
    assert status == 1
    (line,) = [line for line in captured.err.splitlines() if line.startswith("t2t-distill: error: ")]
    return line


class Commands:
    """Records the commands that are run, and writes the files that they would write."""

    def __init__(self, write_checkpoint):
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._write_checkpoint = write_checkpoint
        self.fail_at = ""

    def __call__(self, name, flags):
        self.asked.append((name, dict(flags)))
        if name == self.fail_at:
            raise KeyboardInterrupt
        (self._decode if name == "t2t-distill" else self._train)(flags)

    def _decode(self, flags):
        words = [f"--{flag}={value}" for flag, value in flags.items()]
        assert run(*words) == 0, words

    def _train(self, flags):
        problem = registry.problem("translate_ende")
        vocabulary = problem.vocabulary(flags["data_dir"])
        data_dir, name = str(flags["data_dir"].resolve()), vocabulary.path.name
        settings = Run("translate_ende", flags["hparams_set"], data_dir, name, vocabulary.fingerprint, {})
        save_run(flags["output_dir"], settings, SMALL, vocabulary.path)
        self._write_checkpoint(flags["output_dir"], 3)
        (flags["output_dir"] / "dev.csv").write_text("step,target_tokens,loss\n3,1,2\n")

    def names(self):
        return [name for name, _ in self.asked]


@pytest.fixture
def commands(monkeypatch, write_checkpoint):
    """Replaces the commands, and in them the model: its outputs are the inputs in capitals."""

    def decode(outputs, *_):
        pairs = list(outputs.problem.text("train", outputs.data_dir))
        outputs._begin({"lines": len(pairs)})
        (block,) = outputs.blocks()
        for path, side in ((block.inputs, 0), (block.references, 1), (block.outputs, 0)):
            path.write_bytes(to_bytes([pair[side] for pair in pairs]))

    def measure(translator, splits, target_lang):
        assert target_lang == "de"
        return {
            "parameters": 5,
            "BLEU's tokenizer": "13a",
            **{f"{name} BLEU": float(len(splits[name][0])) for name in splits},
        }

    made = Commands(write_checkpoint)
    monkeypatch.setattr(distill, "run_command", made)
    monkeypatch.setattr(TeacherOutputs, "decode", decode)
    monkeypatch.setattr(distill, "load_translator", lambda *args, **kwargs: None)
    monkeypatch.setattr(comparison, "measure", measure)
    return made


@pytest.fixture
def flags(out, tmp_path):
    return [f"--teacher={out}", "--hparams_set=student_tiny", f"--output_dir={tmp_path / 'student'}"]


STEPS = ["--train_steps=3"]


def test_the_steps_and_their_flags(flags, out, tmp_path, commands, capsys):
    student = tmp_path / "student"
    more = ["--nearest", "--decode_hparams=beam_size=3", "--hparams=batch_size=512", "--noxla"]
    assert run(*flags, *STEPS, *more) == 0
    captured = capsys.readouterr()
    assert commands.asked == [
        (
            "t2t-distill",
            {
                "teacher": str(out),
                "decode_hparams": "beam_size=3",
                "nearest": True,
                "distilled_dir": student / "distilled",
                "worker_id": 0,
            },
        ),
        (
            "t2t-trainer",
            {
                "problem": "translate_ende",
                "data_dir": student / "distilled" / "outputs" / "data",
                "output_dir": student,
                "hparams_set": "student_tiny",
                "hparams": "batch_size=512",
                "train_steps": 3,
                "xla": False,
            },
        ),
    ]
    assert "40 training pairs of 40 sources" in captured.err
    assert "| dev BLEU | 5 | 5 |" in captured.out
    assert (student / "distillation.md").read_text() in captured.out
    assert (student / "averaged" / "model.ckpt-3.npz").exists()
    models = checked_json.load(student / "distillation.json", "")["models"]
    assert models["teacher"].startswith("model.ckpt-7.npz with weights ")
    assert models["student"].startswith("average model.ckpt-3.npz with weights ")


@pytest.mark.slow
@pytest.mark.parametrize("step", ["t2t-distill", "t2t-trainer"])
def test_interrupted_it_resumes_with_the_step(flags, commands, step):
    commands.fail_at = step
    assert run(*flags, *STEPS) == 130
    commands.fail_at = ""
    commands.asked.clear()
    assert run(*flags, *STEPS) == 0
    assert commands.names() == ["t2t-distill", "t2t-trainer"][["t2t-distill", "t2t-trainer"].index(step) :]
    commands.asked.clear()
    assert run(*flags, *STEPS) == 0
    assert commands.names() == []


@pytest.mark.slow
def test_students_share_the_outputs(flags, out, tmp_path, commands, capsys):
    shared = f"--distilled_dir={tmp_path / 'shared'}"
    assert run(*flags, shared, *STEPS) == 0
    other = [
        flags[0],
        "--hparams_set=student_base",
        f"--output_dir={tmp_path / 'other'}",
        "--original_targets",
    ]
    assert run(*other, shared, *STEPS) == 0
    assert commands.names() == ["t2t-distill", "t2t-trainer", "t2t-trainer"]
    assert "80 training pairs of 40 sources" in capsys.readouterr().err
    error = failure(capsys, run(*flags, shared, *STEPS, "--original_targets"))
    assert f"{tmp_path / 'student'} holds a model trained on {tmp_path / 'shared' / 'outputs'}" in error
    assert error.endswith("give another --output_dir")
    error = failure(capsys, run(*flags, shared, *STEPS, "--nearest"))
    assert "shared holds outputs with nearest=False, not True: give another --distilled_dir" in error


def test_workers_only_decode(out, tmp_path, commands, capsys):
    folder = tmp_path / "it's shared"
    flags = [f"--teacher={out}", f"--distilled_dir={folder}", "--decode_shards=2", "--worker_id=1"]
    assert run(*flags, "--nearest") == 0
    said = capsys.readouterr().err
    words = shlex.split(said[said.index("next, when all 2 workers are done: ") :].partition(": ")[2])
    values = distill.command_flags()
    assert values(words) == ["t2t-distill"]
    assert (values.distilled_dir, values.nearest, values.teacher) == (str(folder), True, [str(out)])
    assert not values["worker_id"].present
    assert commands.asked == []
    assert len(read_pairs(next(iter(teacher_outputs(out, folder).blocks())))[0]) == 40


def teacher_outputs(out, folder):
    values = distill.command_flags()
    values(["t2t-distill", f"--teacher={out}", f"--distilled_dir={folder}", "--nearest"])
    return distill._outputs(values, *distill._teachers(values))


@pytest.mark.slow
def test_a_teacher_may_decode_with_ctranslate2(out, tmp_path):
    pytest.importorskip("ctranslate2")
    options = "beam_size=2,extra_length=2"
    flags = [f"--teacher={out}", f"--distilled_dir={tmp_path / 'd'}", f"--decode_hparams={options}"]
    assert run(*flags, "--worker_id=0", "--teacher_engine=ctranslate2") == 0
    inputs, _ = read_pairs(SplitFiles.beside(tmp_path / "d" / "decoded" / "00000.outputs"))
    outputs = (tmp_path / "d" / "decoded" / "00000.outputs").read_text(encoding="utf-8").splitlines()
    translator = Translator.load(out, decode_hparams=options, engine="ctranslate2")
    assert outputs == translator.translate(inputs)
    assert len(outputs) == 40


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_an_ensemble_of_one_model_twice_decodes_as_the_model(out, precision):
    opened, _ = trained_models.open_models([out, out], "teacher")
    lines = ["the dog sees 3 houses", "", "houses"]
    alone, both = (
        trained_models.load_translator(some, "beam_size=3,extra_length=2", precision=precision)
        for some in (opened[:1], opened)
    )
    assert both.engine == alone.engine == f"tensorflow, {precision}"
    assert both.translate(lines) == alone.translate(lines)
    assert both.model.count_params() == 2 * alone.model.count_params()
