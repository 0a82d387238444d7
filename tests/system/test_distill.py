"""From a teacher to a student, by one command; killed, it ends with the same bytes."""

from __future__ import annotations

import contextlib
import io
import re
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from t2t_revival.cli import distill
from t2t_revival.model_folder import ModelFolder, Run
from t2t_revival.utils import checked_json
from tests.support.commands import run
from tests.support.killed_midway import killed_with_lines, on_one_core
from tests.support.processes import Process, run_command

pytestmark = pytest.mark.slow
STUDENT = (
    "num_encoder_layers=2,num_decoder_layers=1,hidden_size=16,filter_size=16,num_heads=2,batch_size=1024"
)
TRAINING = ["--train_steps=4", "--eval_bleu_sentences=0"]
DECODING = "beam_size=2,extra_length=2,batch_size=256"  # in many batches


@pytest.fixture(scope="module")
def place(small_corpus: Path, train_small: Callable[[str, str], Path]) -> Path:
    """A folder with text, and a teacher that has seen little of it."""
    train_small("translate_ende", "teacher")
    return small_corpus


def run_here(name: str, flags: Mapping[str, object]) -> None:
    """Runs a command in this process, which has TensorFlow imported."""
    run(name, *(f"--{flag}={value}" for flag, value in flags.items()))


def run_nothing(name: str, flags: Mapping[str, object]) -> None:
    raise AssertionError(name)


def decoding_flags(place: Path) -> list[str]:
    return [
        f"--teacher={place / 'teacher'}",
        f"--decode_hparams={DECODING}",
        f"--monolingual={place / 'more.en'}",
    ]


@pytest.fixture(scope="module")
def said(place: Path) -> str:
    """The standard output of a distillation."""
    return distilled(place, run_here)


def distilled(place: Path, command: object) -> str:
    out = io.StringIO()
    flags = [
        *decoding_flags(place),
        "--hparams_set=student_tiny",
        f"--hparams={STUDENT}",
        f"--output_dir={place / 'student'}",
        *TRAINING,
    ]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(distill, "run_command", command)
        assert distill.main(["t2t-distill", *flags]) == 0
    return out.getvalue()


@pytest.mark.nightly
def test_the_student_has_learned_the_outputs_of_the_decoder(place: Path, said: str) -> None:
    student, outputs = place / "student", place / "train.outputs"
    flags = [f"--output_dir={place / 'teacher'}", f"--decode_hparams={DECODING}", "--log_examples=0"]
    run("t2t-decoder", *flags, "--dataset_split=train", f"--decode_to_file={outputs}")
    data = student / "distilled" / "outputs" / "data"
    learned = (data.with_name("text") / "train.de").read_text(encoding="utf-8").splitlines()
    expected = outputs.read_text(encoding="utf-8").splitlines()
    assert len(expected) == 200
    assert learned[:-2] == [line for line in expected if line]
    assert checked_json.load(data.with_name("text") / "counts.json", "")["sources"] == 202
    assert Run.load(student).fingerprint == Run.load(place / "teacher").fingerprint
    assert Run.load(student).data_dir == str(data)
    assert ModelFolder(student).hparams.decoder_layers == 1
    assert (student / "averaged" / "model.ckpt-4.npz").exists()


def test_the_two_are_compared(place: Path, said: str) -> None:
    names = "parameters,MB,dev BLEU,dev chrF,test BLEU,test chrF,sentences/s,ms per sentence"
    for name in names.split(","):
        row = rf"^\| {re.escape(name)}( \| [\d.,e+-]+){{3}} \|$"  # teacher, student, student with a beam of 1
        assert re.search(row, said, re.MULTILINE), said
    assert (place / "student" / "distillation.md").read_text(encoding="utf-8") in said
    assert said.endswith(f"next: t2t-decoder --output_dir={place / 'student'}\n")


def test_the_same_command_repeats_nothing(place: Path, said: str) -> None:
    table = said[said.index("## Teacher and student") :]
    assert distilled(place, run_nothing) == table


@pytest.mark.nightly
def test_no_average_where_the_rate_falls_to_0(place: Path, said: str, tmp_path: Path) -> None:
    shared = [*decoding_flags(place), f"--distilled_dir={place / 'student' / 'distilled'}"]
    student = ["--hparams_set=auto", f"--hparams={STUDENT}", f"--output_dir={tmp_path}"]
    run("t2t-distill", *shared, *student, "--train_steps=2", "--eval_bleu_sentences=0")
    assert not (tmp_path / "averaged").exists()


def test_another_student_shares_the_outputs(
    place: Path,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its training alone is asked for, which is stopped, and asked for again."""
    asked: list[tuple[str, Mapping[str, object]]] = []

    def stop(name: str, flags: Mapping[str, object]) -> None:
        asked.append((name, flags))
        raise KeyboardInterrupt

    monkeypatch.setattr(distill, "run_command", stop)
    shared = f"--distilled_dir={place / 'student' / 'distilled'}"
    flags = [
        *decoding_flags(place),
        shared,
        "--hparams_set=student_base",
        f"--output_dir={tmp_path / 'other'}",
    ]
    own = ["--original_targets", "--hparams=batch_size=512", "--train_steps=3", "--noxla"]
    for _ in range(2):
        assert distill.main(["t2t-distill", *flags, *own]) == 130
        assert re.search(r"[34]\d\d training pairs of 202 sources", capsys.readouterr().err)
    (name, given), again = asked
    assert (name, given) == again
    assert name == "t2t-trainer"
    assert given.items() >= {"hparams": "batch_size=512", "train_steps": 3, "xla": False}.items()
    assert distill.main(["t2t-distill", *flags, "--nearest"]) == 1
    assert "holds outputs with nearest=False, not True: give another" in capsys.readouterr().err
    student = [f"--output_dir={place / 'student'}", "--hparams_set=student_tiny", "--original_targets"]
    assert distill.main(["t2t-distill", *decoding_flags(place), *student]) == 1
    assert f"{place / 'student'} holds a model trained on" in capsys.readouterr().err


def test_a_killed_worker_resumes_to_the_same_bytes(place: Path, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "distilled"
    flags = [*decoding_flags(place), f"--distilled_dir={folder}", "--worker_id=0"]
    command = [run_command, "t2t-distill", *flags]
    killed = Process(tmp_path / "killed", on_one_core, [killed_with_lines, *command])
    assert killed.wait() == -signal.SIGKILL, killed.said
    kept = (folder / "decoded" / "00000.outputs.part").read_bytes()
    assert b"\n" in kept
    again = Process(tmp_path / "again", on_one_core, command)
    assert "resuming" in again.end()
    whole = place / "student" / "distilled" / "decoded"
    for path in whole.iterdir():
        assert (folder / "decoded" / path.name).read_bytes() == path.read_bytes()
    assert (whole / "00000.outputs").read_bytes().startswith(kept)
    assert len(list((folder / "decoded").iterdir())) == len(list(whole.iterdir())), "nothing else is left"
