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
COMPILATION = "Finished XLA compilation of jit(_run)"  # of a search or of a loss; as JAX logs it


def run(*command, status=0, **environment):
    module = [sys.executable, "-m", "tests.support.command_without_tensorflow", *map(str, command)]
    own = {"PYTHONPATH": os.fspath(ROOT), "JAX_LOG_COMPILES": "1", **environment}
    done = run_with_backend(module, "jax", **own)
    assert done.returncode == status, done.stderr
    return done


def test_evaluations_are_those_of_tensorflow(trained, tmp_path):
    scores = []
    flags = [f"--data_dir={trained / 'data'}", "--eval_bleu_sentences=3"]
    for backend in ("tensorflow", "jax"):
        out = shutil.copytree(trained / "out", tmp_path / backend)
        command = ["t2t-eval", f"--output_dir={out}", *flags]
        if backend == "jax":
            assert run(*command).stderr.count(COMPILATION) == 2, "the loss and the search"
        else:
            assert eval_command.main(command) == 0
        with (out / "eval-dev.csv").open(encoding="utf-8") as file:
            (row,) = csv.DictReader(file)
        scores.append({name: float(row[name]) for name in ("step", "loss", "perplexity", "accuracy", "bleu")})
    assert scores[1] == pytest.approx(scores[0], rel=1e-4)


def test_a_file_is_decoded_and_again_by_programs_that_were_kept(trained, tmp_path):
    (tmp_path / "in").write_text("the dog sees 3 houses\nthe dog\n", encoding="utf-8")
    kept = {"XDG_CACHE_HOME": str(tmp_path), "JAX_ENABLE_COMPILATION_CACHE": "true"}
    flags = [f"--output_dir={trained / 'out'}", f"--decode_from_file={tmp_path / 'in'}"]
    for number in range(2):
        done = run("t2t-decoder", *flags, f"--decode_to_file={tmp_path / str(number)}", **kept)
        assert "2 sentences in" in done.stderr
        assert done.stderr.count(COMPILATION) == 1
        all_found = done.stderr.count("compilation cache hit") == done.stderr.count("XLA compilation of")
        assert all_found == bool(number)
    outputs = [(tmp_path / name).read_text(encoding="utf-8").splitlines() for name in "01"]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 2


@pytest.mark.parametrize("more", [["--score_file={in}"], ["--decode_from_file={in}", "--partial_targets"]])
def test_what_jax_does_not_have(more, trained, tmp_path):
    (tmp_path / "in").write_text("the dog\tder\n", encoding="utf-8")
    flags = [flag.replace("{in}", str(tmp_path / "in")) for flag in more]
    done = run("t2t-decoder", f"--output_dir={trained / 'out'}", *flags, status=1)
    assert "KERAS_BACKEND=tensorflow" in done.stderr.splitlines()[-1]
