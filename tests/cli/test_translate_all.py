"""`t2t-translate-all`: one complete file for each checkpoint, never made twice."""

import os

import pytest

from t2t_revival import Translator
from t2t_revival.cli import decoder, translate_all
from t2t_revival.cli.bleu import list_translations
from t2t_revival.utils.files import exclusive_lock
from tests.cli.conftest import failure

LINES = "the dog\n\nsees 3 houses\n"
OPTIONS = "beam_size=2,extra_length=3"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.en"
    path.write_text(LINES, encoding="utf-8")
    return path


def run(out, source, *more):
    usual = [] if any("beam_size" in flag for flag in more) else [f"--decode_hparams={OPTIONS}"]
    flags = [f"--model_dir={out}", f"--source={source}", *usual, *more]
    return translate_all.main(["t2t-translate-all", *map(str, flags)])


@pytest.mark.slow
def test_outputs_are_the_decoders(out, source, tmp_path, capsys, write_checkpoint):
    """Compares the second checkpoint, whose weights the first one's model was given."""
    write_checkpoint(out, 12)
    assert run(out, source, "--problem=translate_ende") == 0
    captured = capsys.readouterr()
    folder = out / "translations"
    assert f"2 translations of 3 lines in {folder}, steps 7 to 12" in captured.out
    scoring = f"t2t-bleu --translations_dir={folder} --reference=REFERENCE --target_lang=de"
    assert f"next: {scoring}\n" in captured.out
    made = list_translations(folder)
    assert [(file.step, file.path.name) for file in made] == [
        (7, "translate_ende-7"),
        (12, "translate_ende-12"),
    ]
    assert made[0].path.read_bytes() != made[1].path.read_bytes()
    expected = tmp_path / "expected"
    flags = [f"--output_dir={out}", f"--decode_hparams={OPTIONS}", f"--decode_from_file={source}"]
    assert decoder.main(["t2t-decoder", *flags, f"--decode_to_file={expected}"]) == 0
    assert made[1].path.read_bytes() == expected.read_bytes()
    time = (out / "model.ckpt-12.npz").stat().st_mtime_ns
    assert made[1].path.stat().st_mtime_ns == time, "as old as its checkpoint, for curves over time"


def test_what_is_there_is_not_made_again(out, source, capsys, write_checkpoint):
    write_checkpoint(out, 12)
    (out / "translations").mkdir()
    (out / "translations" / "translate_ende-7").write_text("mine\n")
    assert run(out, source) == 0
    assert "translate_ende-7, there already" in capsys.readouterr().out
    assert (out / "translations" / "translate_ende-7").read_text() == "mine\n"
    assert (out / "translations" / "translate_ende-12").read_text(encoding="utf-8").count("\n") == 3


def test_min_steps_damage_and_removal(out, source, capsys, monkeypatch, write_checkpoint):
    for step in (8, 9, 10):
        write_checkpoint(out, step)
    damaged = out / "model.ckpt-9.npz"
    damaged.write_bytes(damaged.read_bytes()[:900])
    load = Translator.load_checkpoint

    def removed(translator, checkpoint):
        if checkpoint.step == 10:
            checkpoint.path.unlink()
        load(translator, checkpoint)

    monkeypatch.setattr(Translator, "load_checkpoint", removed)
    assert run(out, source, "--min_steps=8") == 0
    assert [file.step for file in list_translations(out / "translations")] == [8]
    captured = capsys.readouterr()
    assert f"warning: {damaged}: corrupt checkpoint" in captured.err
    assert "step 10: skipped, since the training has removed its checkpoint" in captured.err


def test_a_folder_holds_translations_of_one_kind(out, source, capsys):
    assert run(out, source, "--beam_size=3", "--alpha=0.5") == 0
    assert run(out, source, "--decode_hparams=beam_size=3,alpha=0.5,batch_size=9") == 0
    assert "translate_ende-7, there already" in capsys.readouterr().out
    assert "with beam_size=3, not 2; extra_length=50, not 3: give another" in failure(
        capsys, run(out, source, "--alpha=0.5")
    )
    source.write_text("another text\n")
    assert "with source=sha256:" in failure(capsys, run(out, source, "--beam_size=3", "--alpha=0.5"))
    assert run(out, source, f"--translations_dir={out / 'more'}") == 0


def test_the_time_of_the_training_is_kept(out, source):
    (vocabulary,) = out.glob("vocab.*")
    os.utime(vocabulary, (1e9, 1e9))
    assert run(out, source) == 0
    assert (out / "translations" / "translate_ende-flags.json").stat().st_mtime == 1e9


def test_refusals(out, source, capsys):
    assert "no valid checkpoint of 8 steps or more" in failure(capsys, run(out, source, "--min_steps=8"))
    same = out / "translations" / "translate_ende-3"
    same.write_text("the dog\n")
    assert f"the translation {same} would overwrite --source={same}" in failure(capsys, run(out, same))
    assert same.read_text() == "the dog\n"
    same.unlink()
    with exclusive_lock(out / "translations", ""):
        assert "another t2t-translate-all" in failure(capsys, run(out, source))
