"""Files, splits and typed lines that t2t-decoder translates, and targets that it scores."""

import io
import math
import os
import re
import shutil
import subprocess
import sys

import pytest

from t2t_revival import Translator
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.cli import decoder
from t2t_revival.cli.support.tensorflow_setup import ONEDNN
from tests.cli.decoder_command import DECODE, decode, run


@pytest.mark.slow
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


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_is_told_how_to_end(out, monkeypatch, capsys, is_terminal):
    typed = io.StringIO("")
    typed.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stdin", typed)
    assert decode(out, "--decode_interactive") == 0
    captured = capsys.readouterr()
    assert ("type a line, then Enter; Ctrl-D ends\n" in captured.err) == is_terminal
    assert captured.out == "> " * is_terminal


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


@pytest.mark.slow
def test_the_average_is_decoded_where_it_is_made(out, tmp_path, capsys):
    checkpoints.write_average(checkpoints.list_checkpoints(out), out / "averaged")
    (tmp_path / "in").write_text("the dog\n")
    assert decode(out, f"--decode_from_file={tmp_path / 'in'}") == 0
    assert "averaged/model.ckpt-7.npz (step 7, an average)" in capsys.readouterr().err
    assert (
        decode(out, f"--decode_from_file={tmp_path / 'in'}", f"--checkpoint_path={out / 'model.ckpt-7'}") == 0
    )
    assert "an average" not in capsys.readouterr().err


def test_flags_with_empty_values_go_with_all(out, capsys, monkeypatch):
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


SILENT = """
import sys
from t2t_revival.cli import decoder
out, *works = sys.argv[1:]
sys.exit(any(decoder.main(["t2t-decoder", out, *flags.split()]) for flags in works))
"""


def process(*command, stdin=""):
    """Runs Python in a process whose environment does not silence TensorFlow."""
    changed = ("TF_CPP_MIN_LOG_LEVEL", ONEDNN)
    environment = {name: value for name, value in os.environ.items() if name not in changed}
    return subprocess.run(
        [sys.executable, *command], input=stdin, capture_output=True, text=True, check=True, env=environment
    )


@pytest.mark.slow
def test_a_process_of_its_own_says_no_more_than_it_should(out, tmp_path):
    """One thread per stream; TensorFlow prints nothing, whether a file is decoded or scored, or a split."""
    (tmp_path / "pairs").write_text("the dog\tder Hund\nsees\tder Hund\n")
    works = "--decode_from_file=-", f"--score_file={tmp_path / 'pairs'}", f"--decode_hparams={DECODE}"
    done = process("-c", SILENT, f"--output_dir={out}", *works, stdin="the dog\n\n" * 200)
    lines = done.stdout.splitlines()
    assert all(bool(line) == (number % 2 == 0) for number, line in enumerate(lines[:400]))
    assert len(set(lines[:400])) == 2
    assert all(float(line) < 0 for line in lines[400:402])
    start, *said = done.stderr.splitlines()
    assert start == "starting TensorFlow"
    known = r"decoding with .*|.* sentences.*|2 pairs .*|log-probability .*|warning: .* were cut at their .*"
    assert all(re.fullmatch(known, line) for line in said), done.stderr
    assert "400 sentences" in done.stderr


@pytest.mark.slow
def test_typed_lines_are_translated_without_onednn(out):
    """With --debug, TensorFlow says at its start that oneDNN is on."""
    flags = f"--output_dir={out}", "--decode_interactive", "--debug"
    done = process("-m", "t2t_revival.cli.decoder", *flags, stdin="the dog\n")
    assert len(done.stdout.splitlines()) == 1
    assert "oneDNN custom operations are on" not in done.stderr


def test_typed_lines_have_them_too_and_a_wrong_one_ends_nothing(out, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("the dog\tder Hund\n \tder\nthe\n"))
    flags = f"--output_dir={out}", "--decode_hparams=beam_size=3,extra_length=3", "--partial_targets"
    assert decoder.main(["t2t-decoder", *flags, "--decode_interactive"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("der Hund")
    assert captured.out.count("\n") == 2
    assert "error: line 2: a prefix without a source" in captured.err


PAIRS = "the dog\tder Hund\nsees 3 houses\t\nthe\tder Hund sieht\n"


def score(out, *arguments):
    return decoder.main(["t2t-decoder", f"--output_dir={out}", *map(str, arguments)])


def test_a_number_for_each_line_and_what_they_are_worth_together(out, tmp_path, capsys):
    (tmp_path / "pairs").write_text(PAIRS)
    assert score(out, f"--score_file={tmp_path / 'pairs'}", f"--decode_to_file={tmp_path / 'o'}") == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    numbers = [float(line) for line in (tmp_path / "o").read_text().splitlines()]
    expected = Translator.load(out).score([tuple(line.split("\t")) for line in PAIRS.splitlines()])
    assert numbers == pytest.approx([score.log_prob for score in expected], abs=1e-4)
    tokens = sum(score.tokens for score in expected)
    mean = sum(numbers) / tokens
    assert f"log-probability {mean:.3f}" in captured.err
    assert f"perplexity {math.exp(-mean):.1f}" in captured.err
    assert f"({tokens} tokens of 3 targets, EOS counted)" in captured.err
    assert f"next: paste {tmp_path / 'o'} {tmp_path / 'pairs'} | sort -g | head" in captured.err
