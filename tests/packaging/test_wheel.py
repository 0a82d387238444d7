"""The sdist builds a wheel; the wheel, installed outside the checkout, runs the commands of `make demo`."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import t2t_revival

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # a job of its own runs it in CI
ROOT = Path(__file__).parents[2]
NOT_IN_SDIST = ("tests", "tools", "docs", "benchmarks", "build", ".demo")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Runs a command to its end and returns its standard output."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    metadata = tmp_path_factory.mktemp("metadata")
    run(
        *(sys.executable, "setup.py", "-q", "egg_info", "--egg-base", metadata),
        *("sdist", "--dist-dir", folder),
        cwd=ROOT,
    )
    (archive,) = folder.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def installed(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as its wheel, built from the sdist alone, installs it."""
    folder = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, sdist, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    assert wheel.name.startswith(f"t2t_revival-{t2t_revival.__version__}-py3-none")
    run(*pip, "install", "-q", "--no-deps", "--target", folder / "site", wheel, cwd=folder)
    return folder / "site"


def test_the_sdist_has_the_package_and_no_more(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert not {name for name in names if name.split("/")[0] in NOT_IN_SDIST}
    for folder in ("t2t_revival", "problems", "hparams", "examples"):
        files = (file for file in (ROOT / folder).rglob("*") if file.is_file() and file.suffix != ".pyc")
        assert {str(file.relative_to(ROOT)) for file in files} <= names


def test_the_commands_of_the_demo(installed: Path, tmp_path: Path) -> None:
    paths = {"PYTHONPATH": str(installed), "HOME": str(tmp_path)}
    here = run(sys.executable, "-c", "import t2t_revival; print(t2t_revival.__file__)", cwd=tmp_path, **paths)
    assert Path(here.strip()).is_relative_to(installed)
    commands = installed / "bin"
    assert {file.name for file in commands.glob("t2t-*")} >= {"t2t-datagen", "t2t-exporter", "t2t-eval"}
    flags = ("--problem=translate_ende", "--hparams_set=tiny", "--output_dir=model")
    small = "num_hidden_layers=1,hidden_size=16,filter_size=16,num_heads=2,batch_size=1024"
    data = ("--data_source=sample", "--data_dir=data")
    steps = ("--train_steps=2", "--local_eval_frequency=0", "--eval_bleu_sentences=0")
    run(commands / "t2t-trainer", *flags, *data, f"--hparams={small}", *steps, cwd=tmp_path, **paths)
    run(commands / "t2t-avg-all", *flags, cwd=tmp_path, **paths)
    decode = ("--decode_to_file=test.de", "--decode_hparams=beam_size=1,extra_length=0")
    out = run(
        *(commands / "t2t-decoder", *flags, "--data_dir=data", "--dataset_split=test", *decode),
        cwd=tmp_path,
        **paths,
    )
    assert "BLEU" in out
    assert len((tmp_path / "test.de").read_text(encoding="utf-8").splitlines()) == 500
    assert (tmp_path / "model" / "learning_curve.png").exists()
