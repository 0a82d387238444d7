"""Alignment heads that are chosen at once where a command or `Translator.load` needs them."""

import json

import pytest

from t2t_revival import T2TError, Translator
from t2t_revival.addons import head_choice
from t2t_revival.cli import align, decoder
from t2t_revival.decoding.alignment_heads import FILE_NAME, AlignmentHeads
from t2t_revival.utils import checked_json

BEAM = "beam_size=2,extra_length=4"
CHOOSING = "choosing the heads that align words, by 5 pairs of dev, for"
LINE = "the <b>dog</b> sees houses"

pytestmark = pytest.mark.slow


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "in.en"
    path.write_text(f"{LINE}\n", encoding="utf-8")
    return path


def decode(out, text, *arguments):
    flags = f"--output_dir={out}", f"--decode_from_file={text}", f"--decode_hparams={BEAM}"
    return decoder.main(["t2t-decoder", *flags, *arguments])


def changed_heads(out, **changes):
    stored = json.loads((out / FILE_NAME).read_text())
    del stored["checksum"]
    checked_json.save(out / FILE_NAME, {**stored, **changes})


def test_the_decoder_chooses_those_of_choose_heads_once(out, text, capsys):
    assert align.main(["t2t-align", f"--output_dir={out}", "--choose_heads"]) == 0
    chosen = (out / FILE_NAME).read_bytes()
    capsys.readouterr()
    assert decode(out, text, "--markup=html") == 0
    expected, said = capsys.readouterr()
    assert "choosing" not in said

    (out / FILE_NAME).unlink()
    assert decode(out, text, "--markup=html") == 0
    found, said = capsys.readouterr()
    assert f"{CHOOSING} {out / FILE_NAME}\n" in said
    assert said.count("heads") == 1, "one line"
    assert (out / FILE_NAME).read_bytes() == chosen
    assert found == expected
    assert found.count("<b>") == found.count("</b>") == 1

    changed_heads(out, heads=[1], layer=1)  # of the user, which stay
    kept = (out / FILE_NAME).read_bytes()
    assert decode(out, text, "--markup=html") == 0
    assert "choosing" not in capsys.readouterr().err
    assert (out / FILE_NAME).read_bytes() == kept


def test_a_folder_that_cannot_be_written_gets_no_file(out, text, capsys, monkeypatch):
    def refuse(folder):
        raise T2TError(f"cannot write {folder}: Read-only file system; mend the folder's permissions")

    monkeypatch.setattr(head_choice, "check_writable", refuse)
    assert decode(out, text, "--markup=html") == 0
    found, said = capsys.readouterr()
    assert f"{CHOOSING} this run only: cannot write {out}: Read-only file system" in said
    assert not (out / FILE_NAME).exists()
    monkeypatch.undo()
    assert decode(out, text, "--markup=html") == 0
    assert capsys.readouterr().out == found


def test_those_of_a_checkpoint_that_is_given_are_not_stored(out, text, capsys):
    assert decode(out, text, "--markup=html", f"--checkpoint={out / 'model.ckpt-7.npz'}") == 0
    assert f"{CHOOSING} this run only: the checkpoint is a given one\n" in capsys.readouterr().err
    assert not (out / FILE_NAME).exists(), "it may be an early one"
    assert decode(out, text, "--markup=html", "--checkpoint=newest") == 0
    assert f"{CHOOSING} {out / FILE_NAME}\n" in capsys.readouterr().err
    assert (out / FILE_NAME).exists()


def test_given_pairs_are_aligned_without_a_command_before(out, text, tmp_path, capsys):
    (tmp_path / "in.de").write_text("der Hund sieht Häuser\n", encoding="utf-8")
    sides = f"--source={text}", f"--target={tmp_path / 'in.de'}"
    assert align.main(["t2t-align", f"--output_dir={out}", *sides]) == 0
    found, said = capsys.readouterr()
    assert f"{CHOOSING} {out / FILE_NAME}\n" in said
    assert len(found.split()) == 4, "a link for each word"


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_python_chooses_too(out, trained, precision):
    notes = []
    settings = {"precision": precision, "on_note": notes.append, "data_dir": trained / "data"}
    translator = Translator.load(
        out, decode_hparams=f"{BEAM},alignments=pharaoh,token_scores=True", **settings
    )
    assert notes == [f"{CHOOSING} {out / FILE_NAME}"]
    assert translator.detailer.heads == AlignmentHeads.find(out, translator.model.hparams)
    assert translator.nbest(["the dog sees"])[0][0].details.links
    (out / FILE_NAME).unlink()
    plain = Translator.load(out, decode_hparams=BEAM, on_note=notes.append)
    assert not (out / FILE_NAME).exists()
    assert plain.translate("the dog sees")
    assert len(notes) == 1, "nothing is chosen without need"
