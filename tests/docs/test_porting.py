"""T2T's example package, as docs/from_tensor2tensor.md ports it, runs as it stands there."""

import re
from pathlib import Path

import pytest

from t2t_revival import registry
from t2t_revival.cli import datagen, trainer

DOCS = Path(__file__).parents[2] / "docs" / "from_tensor2tensor.md"


@pytest.fixture
def package(tmp_path):
    section = DOCS.read_text(encoding="utf-8").split("\n## Porting a problem\n")[1]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    folder = tmp_path / "usr_poetry"
    folder.mkdir()
    (folder / "__init__.py").write_text(code, encoding="utf-8")
    return folder


@pytest.fixture
def poems(tmp_path):
    """Thirty poems of four lines each."""
    verses = (
        f"Poem {n} begins in the morning,\nit walks {n} miles till noon,\n"
        f"it rests without a warning\nand ends {n} days too soon."
        for n in range(30)
    )
    file = tmp_path / "poems.txt"
    file.write_text("\n\n".join(verses) + "\n")
    return file


@pytest.mark.slow
def test_the_package_makes_data_and_trains(package, poems, tmp_path, capsys):
    flags = [f"--t2t_usr_dir={package}", "--problem=poetry_lines", f"--data_dir={tmp_path / 'data'}"]
    assert datagen.main(["t2t-datagen", *flags, f"--data_source={poems}"]) == 0
    out = capsys.readouterr().out
    assert f"source      {poems} (inputs to targets)" in out
    problem = registry.problem("poetry_lines")
    dev = list(problem.text("dev", tmp_path / "data"))
    assert len(dev) == 9
    assert dev[3] == ("Poem 10 begins in the morning,", "it walks 10 miles till noon,")
    assert len(list(problem.text("train", tmp_path / "data"))) == 81
    small = "num_hidden_layers=1,hidden_size=16,filter_size=16,num_heads=2,max_length=64"
    trained = [f"--output_dir={tmp_path / 'out'}", "--hparams_set=transformer_poetry", f"--hparams={small}"]
    assert trainer.main(["t2t-trainer", *flags, *trained, "--train_steps=1", "--eval_bleu_sentences=0"]) == 0
    assert (tmp_path / "out" / "model.ckpt-1.npz").exists()
    hparams = registry.hparams("transformer_poetry")
    assert (hparams.hidden_size, hparams.num_heads, hparams.layer_prepostprocess_dropout) == (128, 4, 0.6)
