"""`t2t-shortlist`: the file, what is printed, errors; and t2t-decoder with the file."""

import pytest

from t2t_revival.addons.ctranslate2.format import VOCABULARY_MAP
from t2t_revival.addons.shortlist import FILE_NAME, Translations
from t2t_revival.cli import decoder, exporter, shortlist
from t2t_revival.model_folder import ModelFolder


@pytest.mark.slow
def test_a_learned_shortlist_is_used(out, capsys):
    flags = "--translations=4", "--frequent=7"
    assert shortlist.main(["t2t-shortlist", f"--output_dir={out}", *flags]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"learned from 40 pairs: {out / FILE_NAME}\ndev: ")
    assert (
        f"next: t2t-decoder --output_dir={out} --engine=ctranslate2 --decode_hparams=shortlist=on\n"
        in said.out
    )
    vocabulary = ModelFolder(out).vocabularies.inputs
    found = Translations.load(out, vocabulary.fingerprint)
    assert found.best.shape == (vocabulary.size, 4)
    assert found.frequent.shape == (7,)
    (out / "in.en").write_text("the dog sees train1 houses\n\nthe dog\n", encoding="utf-8")
    allowed = {0, 1, 2, *found.frequent}
    for piece in {*vocabulary.encode("the dog sees train1 houses"), *vocabulary.encode("the dog"), 1}:
        allowed |= {piece, *found.best[piece]}
    pytest.importorskip("ctranslate2")
    arguments = f"--decode_from_file={out / 'in.en'}", f"--decode_to_file={out / 'out.de'}"
    options = "--engine=ctranslate2", "--decode_hparams=shortlist=on,extra_length=2"
    assert decoder.main(["t2t-decoder", f"--output_dir={out}", *arguments, *options]) == 0
    lines = (out / "out.de").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    assert lines[1] == ""
    assert all(piece in allowed for line in lines for piece in vocabulary.encode(line))
    how = "--format=ctranslate2", "--decode_hparams=shortlist=on"
    assert exporter.main(["t2t-exporter", f"--output_dir={out}", *how]) == 0
    (written,) = (out / "ctranslate2").glob(f"*/{VOCABULARY_MAP}")
    assert written.read_text(encoding="utf-8").startswith("\t" + vocabulary.pieces[found.frequent[0]])
