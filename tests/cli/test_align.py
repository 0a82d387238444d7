"""`t2t-align`: heads that are chosen, alignments of pairs, their error rate, and what it refuses."""

import json

import pytest

from t2t_revival import Translator
from t2t_revival.cli import align
from t2t_revival.decoding.alignment_heads import FILE_NAME, AlignmentHeads
from t2t_revival.decoding.lines.detailer import encode_pairs

SOURCES, TARGETS = ["the dog sees train1 houses", "", "the dog"], ["der Hund sieht", "", "der Hund"]


def run(out, *arguments):
    return align.main(["t2t-align", f"--output_dir={out}", *map(str, arguments)])


@pytest.fixture
def files(tmp_path):
    for name, lines in (("in.en", SOURCES), ("in.de", TARGETS), ("gold", ["0-0 1-1 2?2", "", "0-0"])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_heads_are_chosen_and_align(out, files, capsys):
    assert run(out, "--choose_heads") == 0
    said = capsys.readouterr().out
    assert f": {out / FILE_NAME}\nit finds " in said
    assert f"next: t2t-decoder --output_dir={out} --decode_hparams=alignments=pharaoh\n" in said
    sides = f"--source={files / 'in.en'}", f"--target={files / 'in.de'}"
    assert run(out, *sides, f"--gold={files / 'gold'}", f"--align_to_file={files / 'aligned'}") == 0
    said = capsys.readouterr().err
    assert "alignment error rate " in said
    assert f"3 sure ones in {files / 'gold'}" in said
    lines = (files / "aligned").read_text().splitlines()
    assert [len(line.split()) for line in lines] == [3, 0, 2], "a link for each word"
    assert run(out, *sides) == 0
    assert capsys.readouterr().out.splitlines() == lines

    assert run(out, *sides, f"--gold={files / 'gold'}", "--choose_heads") == 0
    stored = json.loads((out / FILE_NAME).read_text())
    assert f"alignment error rate {stored['error_rate']:.4f} of the 3 pairs" in capsys.readouterr().out


@pytest.mark.slow
def test_terms_have_the_links_of_alignments(out):
    pairs = [pair for pair in zip(SOURCES, TARGETS, strict=True) if all(pair)]
    assert Translator.load(out).term_detailer is None
    AlignmentHeads(1, (2,), shifted=True).save(out)
    asked = Translator.load(out, decode_hparams="alignments=pharaoh")
    translator = Translator.load(out)
    assert translator.term_detailer
    links = [
        details.links for details in translator.term_detailer(encode_pairs(translator.preprocessor(), pairs))
    ]
    assert [[*one] for one in links] == list(asked.align(pairs))
    assert all(links)
