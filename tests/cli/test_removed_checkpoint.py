"""Commands whose checkpoint a training removes after it was chosen, and before its weights are read."""

import shutil

import pytest

from t2t_revival import T2TError, Translator
from t2t_revival.decoding import engine
from tests.support.processes import run_command


@pytest.fixture
def removed(out, monkeypatch):
    """The first choice; when its weights are to be read, it is gone, and step 8 there."""
    restore, first = engine.restore_weights, out / "model.ckpt-7.npz"

    def restore_later(model, path):
        if path == first and first.exists():
            shutil.move(first, out / "model.ckpt-8.npz")
        return restore(model, path)

    monkeypatch.setattr(engine, "restore_weights", restore_later)
    return first


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines"
    path.write_text("the dog sees 3 houses\nhouses\n", encoding="utf-8")
    return path


def test_python(out, removed):
    with pytest.warns(UserWarning, match=r"model\.ckpt-7\.npz was removed meanwhile: the next one is used"):
        translator = Translator.load(out)
    assert translator.checkpoint
    assert translator.checkpoint.path == out / "model.ckpt-8.npz"


def test_a_file_that_was_asked_for(out, removed):
    with pytest.raises(T2TError, match=f"no checkpoint {removed}"):
        Translator.load(out, str(removed))


FLAGS = {
    "t2t-decoder": ["--output_dir={out}", "--decode_from_file={lines}", "--decode_to_file={to}"],
    "t2t-decoder --ensemble": [
        "--ensemble={out},{copy}",
        "--decode_from_file={lines}",
        "--decode_to_file={to}",
    ],
    "t2t-back-translate": ["--model_dir={out}", "--mono={lines}", "--corpus_dir={to}"],
    "t2t-distill": ["--teacher={out}", "--distilled_dir={to}", "--worker_id=0"],
    "t2t-exporter": ["--output_dir={out}", "--export_dir={to}"],
}


@pytest.mark.slow
@pytest.mark.parametrize("command", FLAGS)
def test_commands(command, out, removed, lines, tmp_path, capsys):
    shutil.copytree(out, tmp_path / "copy")
    places = {"out": out, "lines": lines, "to": tmp_path / "to"}
    places |= {name: tmp_path / name for name in ("copy",)}
    flags = [flag.format(**places) for flag in FLAGS[command]]
    status, said = run_command(command.split()[0], *flags), capsys.readouterr().err
    assert status == 0, said
    assert said.count(f"warning: {removed} was removed meanwhile: the next one is used\n") == 1
    assert "model.ckpt-8.npz" in said or command.startswith(("t2t-exporter", "t2t-decoder --"))
