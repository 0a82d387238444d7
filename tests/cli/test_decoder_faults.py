"""Faults of models, inputs, outputs, settings and flags that t2t-decoder reports in one line."""

import os

import pytest

from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.cli import decoder, exporter
from tests.cli.conftest import refused
from tests.cli.decoder_command import decode, run


def test_checkpoint_of_another_model(out, tmp_path, capsys, write_checkpoint):
    write_checkpoint(out, 8, hidden_size=16)
    (tmp_path / "in").write_text("the\n")
    refused(capsys, decode(out, f"--decode_from_file={tmp_path / 'in'}"), "model.ckpt-8", "another model")


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


@pytest.mark.parametrize("given", [True, False])
def test_damaged_checkpoint_loses_nothing(out, tmp_path, capsys, given):
    path = out / "model.ckpt-7.npz"
    flip_a_bit(path)
    (tmp_path / "in").write_text("the\n")
    (tmp_path / "o").write_text("kept")
    more = [f"--checkpoint_path={path}"] if given else []
    status = decode(out, f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'o'}", *more)
    error = capsys.readouterr().err
    assert status == 1
    assert f"{path}: corrupt checkpoint" in error
    assert ("no valid checkpoint" in error) != given
    assert (tmp_path / "o").read_text() == "kept"
    assert path.exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", [decoder, exporter])
def test_the_checkpoint_before_a_damaged_one_is_used(out, tmp_path, capsys, write_checkpoint, command):
    write_checkpoint(out, 9)
    flip_a_bit(out / "model.ckpt-9.npz")
    (tmp_path / "in").write_text("the\n")
    more = [f"--decode_from_file={tmp_path / 'in'}"] if command is decoder else ["--format=ctranslate2"]
    if command is exporter:
        pytest.importorskip("ctranslate2")
    assert command.main(["t2t", f"--output_dir={out}", *more]) == 0
    captured = capsys.readouterr()
    warning = f"warning: {out / 'model.ckpt-9.npz'}: corrupt checkpoint"
    assert warning in captured.err
    assert "ignored: the one before it is used" in captured.err
    assert "step 7" in captured.out + captured.err
    assert (out / "model.ckpt-9.npz").exists()


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["decode_from_file", "score_file"])
def test_weights_that_are_no_numbers(out, tmp_path, capsys, flag):
    arrays, meta = checkpoints.load(out / "model.ckpt-7.npz")
    arrays = {name: a * float("nan") if a.dtype.kind == "f" else a for name, a in arrays.items()}
    checkpoints.save(out / "model.ckpt-7.npz", arrays, meta)
    (tmp_path / "in").write_text("the\tder\n")
    assert decode(out, f"--{flag}={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'o'}") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "contain NaN" in captured.err.splitlines()[-1]
    assert not (tmp_path / "o").exists()


def test_another_vocabulary(out, tmp_path, capsys):
    (vocabulary,) = out.glob("vocab.*")
    vocabulary.write_bytes(b"no vocabulary")
    (tmp_path / "in").write_text("the\n")
    refused(capsys, decode(out, f"--decode_from_file={tmp_path / 'in'}"), vocabulary)


def test_the_standard_output_is_not_the_input_either(tmp_path, capfd):
    (tmp_path / "in").write_text("the dog\n")
    before = os.dup(1)
    with (tmp_path / "in").open("ab") as file:
        os.dup2(file.fileno(), 1)
        try:
            status = run("--output_dir=nowhere", f"--decode_from_file={tmp_path / 'in'}")
        finally:
            os.dup2(before, 1)
            os.close(before)
    assert status == 1
    assert "the standard output would overwrite --decode_from_file" in capfd.readouterr().err
