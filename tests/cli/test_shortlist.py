"""`t2t-shortlist`: the file, what is printed, errors; and t2t-decoder with the file."""

import pytest

from t2t_revival import registry
from t2t_revival.cli import decoder, shortlist
from t2t_revival.decoding.translations import FILE_NAME, Translations
from t2t_revival.training.run import load_vocabulary


def run(out, *arguments):
    return shortlist.main(["t2t-shortlist", f"--output_dir={out}", *map(str, arguments)])


@pytest.mark.slow
def test_a_learned_shortlist_is_used(out, capsys):
    assert run(out, "--translations=4", "--frequent=7") == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"learned from 40 pairs: {out / FILE_NAME}\ndev: ")
    assert f"next: t2t-decoder --output_dir={out} --decode_hparams=shortlist=on\n" in said.out
    vocabulary = load_vocabulary(out)
    found = Translations.load(out, vocabulary.fingerprint)
    assert found.best.shape == (vocabulary.size, 4)
    assert found.frequent.shape == (7,)
    (out / "in.en").write_text("the dog sees train1 houses\n\nthe dog\n", encoding="utf-8")
    allowed = {0, 1, 2, *found.frequent}
    for piece in {*vocabulary.encode("the dog sees train1 houses"), *vocabulary.encode("the dog"), 1}:
        allowed |= {piece, *found.best[piece]}
    for mode in ("on", "by_line"):
        arguments = f"--decode_from_file={out / 'in.en'}", f"--decode_to_file={out / mode}"
        options = f"--decode_hparams=shortlist={mode},extra_length=2"
        assert decoder.main(["t2t-decoder", f"--output_dir={out}", *arguments, options]) == 0
        lines = (out / mode).read_text(encoding="utf-8").splitlines()
        assert len(lines) == 3
        assert lines[1] == ""
        assert all(piece in allowed for line in lines for piece in vocabulary.encode(line))


def test_without_a_file_the_decoder_names_the_command(out, capsys):
    (out / "in.en").write_text("the dog\n", encoding="utf-8")
    arguments = f"--decode_from_file={out / 'in.en'}", "--decode_hparams=shortlist=on"
    assert decoder.main(["t2t-decoder", f"--output_dir={out}", *arguments]) == 1
    assert f"run t2t-shortlist --output_dir={out}" in capsys.readouterr().err


def test_data_of_another_vocabulary_is_refused(trained, out, tmp_path, capsys):
    problem = registry.problem("translate_ende", data_source=str(trained / "corpus"), vocab_size=300)
    problem.generate_data(tmp_path / "other")
    assert run(out, f"--data_dir={tmp_path / 'other'}") == 1
    assert "was made with another vocabulary than that of the model" in capsys.readouterr().err
    assert not (out / FILE_NAME).exists()


def test_missing_data_names_the_command(out, tmp_path, capsys):
    assert run(out, f"--data_dir={tmp_path / 'none'}") == 1
    assert "no data for translate_ende" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--translations=0", "--frequent=none", "--max_pairs=-1", "--best=3"])
def test_wrong_flags(out, flag, capsys):
    assert run(out, flag) != 0
    assert flag.partition("=")[0].lstrip("-") in capsys.readouterr().err
