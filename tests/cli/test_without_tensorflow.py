"""Commands on a machine that has JAX and no TensorFlow."""

import csv
import os
import shutil
import sys
from pathlib import Path

import pytest

from t2t_revival.cli import eval as eval_command
from tests.support.backend_process import run_with_backend

pytest.importorskip("jax")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(*command, status=0):
    module = [sys.executable, "-m", "tests.support.command_without_tensorflow", *map(str, command)]
    done = run_with_backend(module, "jax", PYTHONPATH=os.fspath(ROOT))
    assert done.returncode == status, done.stderr
    return done


def test_evaluations_are_those_of_tensorflow(trained, tmp_path):
    scores = []
    flags = [f"--data_dir={trained / 'data'}", "--eval_bleu_sentences=3"]
    for backend in ("tensorflow", "jax"):
        out = shutil.copytree(trained / "out", tmp_path / backend)
        command = ["t2t-eval", f"--output_dir={out}", *flags]
        if backend == "jax":
            run(*command)
        else:
            assert eval_command.main(command) == 0
        with (out / "eval-dev.csv").open(encoding="utf-8") as file:
            (row,) = csv.DictReader(file)
        scores.append({name: float(row[name]) for name in ("step", "loss", "perplexity", "accuracy", "bleu")})
    assert scores[1] == pytest.approx(scores[0], rel=1e-4)


def test_a_file_is_decoded(trained, tmp_path):
    (tmp_path / "in").write_text("the dog sees 3 houses\nthe dog\n", encoding="utf-8")
    done = run(
        "t2t-decoder",
        f"--output_dir={trained / 'out'}",
        f"--decode_from_file={tmp_path / 'in'}",
        f"--decode_to_file={tmp_path / 'jax'}",
    )
    assert "2 sentences in" in done.stderr
    assert len((tmp_path / "jax").read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize("more", [["--score_file={in}"], ["--decode_from_file={in}", "--partial_targets"]])
def test_what_jax_does_not_have(more, trained, tmp_path):
    (tmp_path / "in").write_text("the dog\tder\n", encoding="utf-8")
    flags = [flag.replace("{in}", str(tmp_path / "in")) for flag in more]
    done = run("t2t-decoder", f"--output_dir={trained / 'out'}", *flags, status=1)
    assert "KERAS_BACKEND=tensorflow" in done.stderr.splitlines()[-1]
