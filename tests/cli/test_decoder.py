import errno
import io
import os
import shutil
import subprocess
import sys

import pytest

from t2t_revival.cli import decoder, exporter
from t2t_revival.decoding import translator
from t2t_revival.decoding.translator import Translation, Translator
from t2t_revival.training.checkpoints import directory as checkpoints

DECODE = "beam_size=2,extra_length=3"


def run(*arguments):
    return decoder.main(["t2t-decoder", *map(str, arguments)])


def decode(out, *arguments):
    return run(f"--output_dir={out}", f"--decode_hparams={DECODE}", *arguments)


def refused(capsys, status, *parts):
    """Checks that a command ended with one line of error and nothing else."""
    captured = capsys.readouterr()
    assert status == 1
    assert captured.out == ""
    (line,) = [line for line in captured.err.splitlines() if not line.startswith("decoding with")]
    assert line.startswith("t2t-decoder: error: ")
    for part in parts:
        assert str(part) in line


def test_file_to_file_line_by_line(out, tmp_path, capsys):
    (tmp_path / "in").write_bytes(b"\xef\xbb\xbfthe dog\r\n\nsees 3 houses\n  \nthe end")
    assert decode(out, f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'o'}") == 0
    lines = (tmp_path / "o").read_text(encoding="utf-8").split("\n")
    assert len(lines) == 6
    assert [bool(line) for line in lines] == [True, False, True, False, True, False]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "o", "out"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "5 sentences" in captured.err
    assert f"t2t-bleu --translation={tmp_path / 'o'}" in captured.err


def test_standard_streams(out, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the dog\nsees\n")))
    assert decode(out, "--decode_from_file=-") == 0
    assert capsys.readouterr().out.count("\n") == 2


def test_the_training_removes_the_checkpoint_while_it_is_loaded(
    out, tmp_path, capsys, monkeypatch, write_checkpoint
):
    restore_weights = translator.restore_weights

    def removed_once(model, path):
        if path.name == "model.ckpt-7.npz":
            write_checkpoint(out, 9)
            path.unlink()
        return restore_weights(model, path)

    monkeypatch.setattr(translator, "restore_weights", removed_once)
    (tmp_path / "in").write_text("the dog\n")
    assert decode(out, f"--decode_from_file={tmp_path / 'in'}") == 0
    assert "model.ckpt-9.npz (step 9)" in capsys.readouterr().err
    (out / "model.ckpt-9.npz").rename(out / "model.ckpt-7.npz")
    given = f"--checkpoint_path={out / 'model.ckpt-7.npz'}"
    refused(capsys, decode(out, given, f"--decode_from_file={tmp_path / 'in'}"), "no checkpoint")


def test_beams_and_scores_are_joined_by_tabs(out, tmp_path, capsys):
    (tmp_path / "in").write_text("the dog\n\n")
    options = f"--decode_hparams={DECODE},return_beams=True,write_beam_scores=True"
    assert run(f"--output_dir={out}", options, f"--decode_from_file={tmp_path / 'in'}") == 0
    first, second = capsys.readouterr().out.splitlines()
    texts_and_scores = first.split("\t")
    assert len(texts_and_scores) == 4
    assert 0 > float(texts_and_scores[1]) >= float(texts_and_scores[3])
    assert second == "\t0.00"


def test_a_line_of_nbest_has_as_many_outputs_as_the_others(out, tmp_path, capsys, monkeypatch):
    """T2T's had: those that its search did not finish were empty."""
    found = [[Translation("a", -1.0), Translation("b", -2.0)], [Translation("c", -3.0)]]

    def nbest(translator, lines, on_outputs, **_):
        on_outputs(dict(enumerate(found)))
        return found

    monkeypatch.setattr(Translator, "nbest", nbest)
    (tmp_path / "in").write_text("the dog\nsees\n")
    for more, expected in (
        ("", "a\tb\nc\t\n"),
        (",write_beam_scores=True", "a\t-1.00\tb\t-2.00\nc\t-3.00\t\t-inf\n"),
    ):
        options = f"--decode_hparams={DECODE},return_beams=True{more}"
        assert run(f"--output_dir={out}", options, f"--decode_from_file={tmp_path / 'in'}") == 0
        assert capsys.readouterr().out == expected


def test_nbest_is_not_proposed_to_t2t_bleu(out, tmp_path, capsys):
    (tmp_path / "in").write_text("the dog\n")
    for more in ("return_beams=True", "write_beam_scores=True"):
        flags = [f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'o'}"]
        assert run(f"--output_dir={out}", f"--decode_hparams={DECODE},{more}", *flags) == 0
        assert "t2t-bleu" not in capsys.readouterr().err


def test_a_batch_size_in_sentences_is_warned_of_once(out, tmp_path, capsys):
    (tmp_path / "in").write_text("the dog\n")
    options = f"--decode_hparams={DECODE},batch_size=32"
    assert run(f"--output_dir={out}", options, f"--decode_from_file={tmp_path / 'in'}") == 0
    error = capsys.readouterr().err
    assert error.count("warning: decode_hparams: batch_size=32 counts input tokens here") == 1
    with pytest.warns(UserWarning, match="batch_size=32 counts input tokens") as caught:
        Translator.load(out, decode_hparams="batch_size=32")
    assert [warning.filename for warning in caught] == [__file__]


def test_an_output_that_is_the_models_is_refused(out, tmp_path, capsys):
    (tmp_path / "in").write_text("the\n")
    checkpoint = out / "model.ckpt-7.npz"
    before = checkpoint.read_bytes()
    flags = [f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={checkpoint}"]
    refused(capsys, decode(out, *flags), f"--decode_to_file={checkpoint} would overwrite the model's")
    assert checkpoint.read_bytes() == before


def test_a_split_does_not_overwrite_its_data(out, trained, capsys):
    (shard,) = (trained / "data").glob("*-dev-*")
    status = decode(out, f"--decode_to_file={shard}")
    refused(capsys, status, f"--decode_to_file={shard} would overwrite the data's")


def test_interactive_ends_with_the_input(out, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("the dog\n\nsees\n"))
    assert decode(out, "--decode_interactive") == 0
    lines = capsys.readouterr().out.split("\n")
    assert [bool(line) for line in lines] == [True, False, True, False]


def test_dev_split_with_its_bleu(out, capsys):
    assert decode(out, "--log_examples=2") == 0
    text = capsys.readouterr().out
    assert text.count("reference  der Hund sieht dev") == 2
    assert "on dev, 5 sentences" in text
    assert "nrefs:1|case:mixed" in text
    folder = out / "decoded"
    assert len((folder / "dev-7.outputs").read_text(encoding="utf-8").splitlines()) == 5
    assert (folder / "dev-7.inputs").read_text(encoding="utf-8").startswith("the dog sees dev0 houses\n")
    assert (folder / "dev-7.targets").read_text(encoding="utf-8").endswith("der Hund sieht dev4 Häuser\n")
    assert f"next: t2t-bleu --translation={folder / 'dev-7.outputs'}" in text


@pytest.mark.parametrize("flag", ["--eval_use_test_set", "--dataset_split=test"])
def test_test_split(out, tmp_path, flag, capsys):
    assert decode(out, flag, f"--decode_to_file={tmp_path / 'test.de'}") == 0
    assert len((tmp_path / "test.de").read_text(encoding="utf-8").splitlines()) == 4
    assert "on test, 4 sentences" in capsys.readouterr().out


def test_the_average_is_decoded_where_it_is_made(out, tmp_path, capsys):
    checkpoints.average(checkpoints.list_checkpoints(out), out)
    (tmp_path / "in").write_text("the dog\n")
    assert decode(out, f"--decode_from_file={tmp_path / 'in'}") == 0
    assert "averaged/model.ckpt-7.npz (step 7, an average)" in capsys.readouterr().err
    assert (
        decode(out, f"--decode_from_file={tmp_path / 'in'}", f"--checkpoint_path={out / 'model.ckpt-7'}") == 0
    )
    assert "an average" not in capsys.readouterr().err


def test_a_long_line_is_decoded_and_named(out, tmp_path, capsys):
    (tmp_path / "in").write_text("the\n" + "houses " * 99 + "\n")
    assert decode(out, f"--decode_from_file={tmp_path / 'in'}") == 0
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 2
    assert f"warning: {tmp_path / 'in'}, line 2: " in captured.err
    assert "truncated to the first 30" in captured.err


def test_no_run(tmp_path, capsys):
    (tmp_path / "in").write_text("the\n")
    status = decode(tmp_path / "nowhere", f"--decode_from_file={tmp_path / 'in'}")
    refused(capsys, status, tmp_path / "nowhere", "t2t-trainer")


def test_no_checkpoint(out, tmp_path, capsys):
    (out / "model.ckpt-7.npz").unlink()
    (tmp_path / "in").write_text("the\n")
    to = tmp_path / "o"
    refused(
        capsys,
        decode(out, f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={to}"),
        "no checkpoint",
    )
    assert not to.exists()


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


def test_weights_that_are_no_numbers(out, tmp_path, capsys):
    arrays, meta = checkpoints.load(out / "model.ckpt-7.npz")
    arrays = {name: a * float("nan") if a.dtype.kind == "f" else a for name, a in arrays.items()}
    checkpoints.save(out / "model.ckpt-7.npz", arrays, meta)
    (tmp_path / "in").write_text("the\n")
    status = decode(out, f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'o'}")
    captured = capsys.readouterr().err
    assert status == 1
    assert "contain NaN" in captured.splitlines()[-1]
    assert not (tmp_path / "o").exists()


def test_another_vocabulary(out, tmp_path, capsys):
    (vocabulary,) = out.glob("vocab.*")
    vocabulary.write_bytes(b"no vocabulary")
    (tmp_path / "in").write_text("the\n")
    refused(capsys, decode(out, f"--decode_from_file={tmp_path / 'in'}"), vocabulary)


def test_missing_input_file(out, tmp_path, capsys):
    refused(capsys, decode(out, f"--decode_from_file={tmp_path / 'x'}"), tmp_path / "x", "No such file")


def test_input_that_is_not_utf8(out, tmp_path, capsys):
    (tmp_path / "in").write_bytes(b"the\nd\xe9j\xe0\n")
    refused(capsys, decode(out, f"--decode_from_file={tmp_path / 'in'}"), tmp_path / "in", "line 2", "UTF-8")


@pytest.mark.parametrize("target", ["missing/o", "out"])
def test_output_that_cannot_be_written_is_known_before_decoding(out, tmp_path, capsys, target):
    (tmp_path / "in").write_text("the\n")
    path = tmp_path / target
    status = decode(out, f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={path}")
    refused(capsys, status, f"cannot write {path}")


def test_a_fault_of_another_file_is_not_said_to_be_the_outputs(out, tmp_path, capsys, monkeypatch):
    def load(*_, **__):
        raise OSError(errno.EIO, "Input/output error", "model.ckpt-7.npz")

    monkeypatch.setattr(Translator, "load", load)
    (tmp_path / "in").write_text("the\n")
    status = decode(out, f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'o'}")
    error = capsys.readouterr().err
    assert status == 1
    assert "model.ckpt-7.npz" in error
    assert "cannot write" not in error


def test_a_disk_that_gets_full_is_the_outputs_fault(out, tmp_path, capsys, monkeypatch):
    def fsync(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    (tmp_path / "in").write_text("the\n")
    status = decode(out, f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'o'}")
    assert status == 1
    assert f"cannot write {tmp_path / 'o'}: No space left" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_wrong_decode_hparams(out, tmp_path, capsys):
    (tmp_path / "in").write_text("the\n")
    status = run(f"--output_dir={out}", "--decode_hparams=beam=3", f"--decode_from_file={tmp_path / 'in'}")
    refused(capsys, status, "did you mean beam_size")


def test_flags_that_name_another_model(out, capsys):
    refused(capsys, decode(out, "--problem=translate_enfr"), "translate_enfr", "translate_ende")
    refused(capsys, decode(out, "--hparams_set=big"), "big", "tiny")


def test_missing_split(out, trained, tmp_path, capsys):
    refused(capsys, decode(out, f"--data_dir={tmp_path}"), tmp_path, "t2t-datagen")


def test_flags_that_say_nothing_go_with_all(out, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert decode(out, "--decode_interactive", "--noeval_use_test_set", "--dataset_split=") == 0


def test_output_dir_by_problem_and_hparams_set(out, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / "t2t_train" / "translate_ende" / "tiny"
    shutil.copytree(out, place)
    (tmp_path / "in").write_text("the\n")
    flags = ["--problem=translate_ende", "--hparams_set=tiny", f"--decode_from_file={tmp_path / 'in'}"]
    assert run(*flags) == 0
    assert str(place) in capsys.readouterr().err


def process(out, *flags, stdin=None):
    """A decoder's process, in which TensorFlow may say at its start what it wants."""
    command = [sys.executable, "-m", "t2t_revival.cli.decoder", f"--output_dir={out}", *flags]
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    return subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=True, env=environment)


@pytest.mark.slow
def test_a_process_of_its_own_says_no_more_than_it_should(out, tmp_path):
    """Streams of one thread each; nothing of TensorFlow's on the standard output."""
    (tmp_path / "in").write_text("the dog\n\n" * 200)
    with (tmp_path / "in").open() as file:
        done = process(out, "--decode_from_file=-", stdin=file)
    lines = done.stdout.split("\n")
    assert len(lines) == 401
    assert all(bool(line) == (number % 2 == 0) for number, line in enumerate(lines[:-1]))
    assert len(set(lines[:-1])) == 2
    assert "400 sentences" in done.stderr
    assert_lines_of_ours(done.stderr)


@pytest.mark.slow
def test_a_split_is_decoded_in_silence_too(out):
    assert_lines_of_ours(process(out, f"--decode_hparams={DECODE}").stderr)


def assert_lines_of_ours(text):
    assert "oneDNN" not in text
    assert "cuInit" not in text
    first, *others = text.splitlines()
    assert first.startswith("decoding with")
    assert all(" sentences" in line for line in others)
