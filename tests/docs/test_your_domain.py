"""The tutorial "Your domain, from a general model": its script and commands run, at a small scale."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_lines import last_of_each
from tests.support.commands import run

PAGE = Path(__file__).parents[2] / "docs" / "your_domain.md"
FEWER = "--hparams=num_hidden_layers=1,hidden_size=16,filter_size=16,num_heads=2,batch_size=256"


def smaller(command: str, flags: list[str]) -> list[str]:
    """Returns the flags of a command with fewer updates and a smaller model."""
    if command != "t2t-trainer":
        return flags
    hparams = [flag.removeprefix("--hparams=") for flag in flags if flag.startswith("--hparams=")]
    rest = [flag for flag in flags if not flag.startswith("--hparams=")]
    joined = ",".join([FEWER, *hparams])
    fewer = ["--train_steps=4", "--local_eval_frequency=2", "--eval_bleu_sentences=4"]
    return last_of_each([*rest, joined, *fewer])


@pytest.mark.slow
@pytest.mark.nightly
def test_its_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("t2t_revival.data.sources.DEFAULT_SIZES", {"train": 300, "dev": 8, "test": 8})
    text = PAGE.read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    subprocess.run([sys.executable, "-"], input=script, text=True, check=True)
    blocks = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    said = []
    for line in blocks.splitlines():
        command, *flags = shlex.split(line)
        if command.startswith("t2t-"):
            said.append(run(command, *smaller(command, flags)))
    assert len(said) == 9
    progress = "".join(done.stderr for done in said)
    assert re.search(r"starting with the weights of .*general.* new pieces", progress)
    assert "bleu/general" in progress
    assert len(Path("both.de").read_text().splitlines()) == 80
    assert list(Path("both/export").glob("[0-9]*/saved_model.pb"))
