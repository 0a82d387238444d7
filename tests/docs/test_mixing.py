"""The page "Several corpora": its commands run as they stand, in their order, at a small scale."""

import re
import shlex
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.line_corpus import write_corpus

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "mixing.md"
FEWER = {  # flags besides those of the page
    "t2t-datagen": ["--vocab_size=330"],
    "t2t-trainer": [
        "--hparams=train_steps=4,batch_size=256,num_hidden_layers=1,hidden_size=16,filter_size=16,num_heads=2",
        "--eval_bleu_sentences=4",
    ],
    "t2t-eval": ["--eval_bleu_sentences=4"],
}


@pytest.mark.slow
@pytest.mark.nightly
def test_its_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("t2t_revival.data.sources.DEFAULT_SIZES", {"train": 60, "dev": 4, "test": 4})
    text = PAGE.read_text(encoding="utf-8")
    (listed,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    Path("corpora.yaml").write_text(listed)
    for name, pairs in (("news", 300), ("talks", 100), ("back", 1200)):
        write_corpus(tmp_path / name, train=pairs)
    for path in Path("back").glob("dev.*"):
        path.unlink()
    Path("input.txt").write_text("the dog sees a house\n\n")
    blocks = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    said = {}
    for line in blocks.splitlines():
        command, *flags = shlex.split(line)
        said[line] = run(command, *flags, *FEWER.get(command, ()))
    datagen, _, evaluation, tagged, _, _ = said.values()
    assert re.search(r"train +news +75.0% +300", datagen.stdout)
    assert re.search(r"train +talks +25.0% +100", datagen.stdout)
    assert "bleu/news  bleu/talks" in evaluation.stdout
    assert re.search(r"train +back +25.0% +1,000", tagged.stdout)
    assert not re.search(r"dev +back", tagged.stdout)
    outputs = Path("output.txt").read_text().splitlines()
    assert len(outputs) == 2
    assert outputs[1] == ""
