"""An imported model is quantised and trained on like any other, and proposes commands that work."""

import io
import re
import shlex
import sys

import pytest

from t2t_revival import Translator, experiment
from t2t_revival.checkpoints.directory import list_checkpoints
from t2t_revival.cli import datagen, decoder, eval, import_checkpoint, trainer
from t2t_revival.model_folder import Run
from tests.support.command_lines import last_of_each
from tests.support.t2t_model import import_one

LINES = ["the dogs", "", " \u3000", "a\nb\rc", "ö \\95; _ 👩‍👧", "a\0b", "the dog, the dogs 日本 " * 3]


@pytest.fixture(scope="module")
def imported(tmp_path_factory, subwords_file):
    """An imported model for the tests that do not change its folder, and a translator of short outputs."""
    out = import_one(tmp_path_factory.mktemp("imported"), subwords_file)
    return out, Translator.load(out, decode_hparams="extra_length=3")


@pytest.mark.slow
def test_a_training_goes_on_with_t2ts_vocabulary(out, tmp_path, capsys, monkeypatch):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("train.en", "train.de", "dev.en", "dev.de"):
        (corpus / name).write_text("the dogs\ndogs, the dog\n" * 20)
    vocabulary = next(out.glob("vocab.*.subwords"))
    arguments = ["--problem=translate_ende", "--hparams_set=transformer_base", f"--output_dir={out}"]
    arguments += [f"--data_dir={tmp_path / 'data'}", f"--data_source={corpus}", "--train_steps=9"]
    made = []
    scores = experiment.SplitScores
    monkeypatch.setattr(experiment, "SplitScores", lambda *args: made.append(args[4]) or scores(*args))
    stored = Run.load(out).decode_hparams
    assert stored["extra_length"] == 100
    assert trainer.main(["t2t-trainer", *arguments, f"--vocab_file={vocabulary}"]) == 0
    assert Run.load(out).decode_hparams == stored
    assert made[0].extra_length == 100, "dev sentences are decoded as the imported model is"
    assert [checkpoint.step for checkpoint in list_checkpoints(out)] == [7, 9]
    elsewhere = last_of_each([*arguments, f"--data_dir={tmp_path / 'other'}"])
    assert trainer.main(["t2t-trainer", *elsewhere]) == 1
    assert "another vocabulary" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command(imported, out, tmp_path, capsys):
    command = ["t2t-import-checkpoint", f"--checkpoint={tmp_path / 't2t'}"]
    assert import_checkpoint.main([*command, f"--output_dir={tmp_path / 'second'}"]) == 0
    said = capsys.readouterr().out
    assert "step 7: " in said
    assert "not imported: the optimizer's state" in said
    assert "hparams_set: transformer_base, but with encoder_layers=2, decoder_layers=2, hidden_size=8" in said
    assert f"next: t2t-decoder --output_dir={tmp_path / 'second'} --decode_interactive\n" in said
    second = Translator.load(tmp_path / "second", decode_hparams="extra_length=3")
    assert second.translate("the dog") == imported[1].translate("the dog")


def pasted(main, command, *more):
    """Runs a printed command with more flags."""
    return main([*shlex.split(command), *more])


@pytest.mark.slow
def test_the_commands_that_are_proposed_work(out, tmp_path, capsys, monkeypatch):
    place = tmp_path / "it's a place"
    corpus = place / "corpus"
    corpus.mkdir(parents=True)
    for name in ("train.en", "train.de", "dev.en", "dev.de"):
        (corpus / name).write_text("the dogs\ndogs, the dog\n" * 2)
    run = f"--output_dir={place / 'out'}"
    assert import_checkpoint.main(["t2t-import-checkpoint", f"--checkpoint={tmp_path / 't2t'}", run]) == 0
    said = capsys.readouterr().out
    decode, make, train = re.findall(r": (t2t-[a-z]+ --.*)", said)
    monkeypatch.setattr(sys, "stdin", io.StringIO("the dog\n"))
    assert pasted(decoder.main, decode, "--decode_hparams=extra_length=2") == 0
    quick, hints = ["--eval_bleu_sentences=0"], []
    assert eval.main(["t2t-eval", run, *quick]) == 1
    assert decoder.main(["t2t-decoder", run, "--dataset_split=dev"]) == 1
    for line in capsys.readouterr().err.splitlines():
        hints += re.findall(r"run (t2t-datagen .*)", line)
    assert hints == [make, make], "all say the same"
    assert f"--vocab_file={shlex.quote(str(next((place / 'out').glob('vocab.*'))))}" in make
    assert pasted(datagen.main, make, f"--data_source={corpus}") == 0
    assert eval.main(["t2t-eval", run, *quick]) == 0
    assert decoder.main(["t2t-decoder", run, "--dataset_split=dev", "--decode_hparams=extra_length=2"]) == 0
    flags = trainer.main.parse(shlex.split(train))
    assert flags.data_dir == str(place / "out" / "data")
    assert make.endswith(f" --vocab_file={shlex.quote(','.join(map(str, flags.data.vocab_file)))}")
    assert (flags.problem, flags.hparams_set) == ("translate_ende", Run.load(place / "out").hparams_set)
