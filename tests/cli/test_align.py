"""`t2t-align`: heads that are chosen, alignments of pairs, their error rate, and what it refuses."""

import json

import pytest

from t2t_revival import Translator
from t2t_revival.cli import align, decoder
from t2t_revival.decoding import aligner
from t2t_revival.decoding.alignment_heads import FILE_NAME, AlignmentHeads

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
def test_the_decoder_writes_alignments_and_objects(out, files, capsys):
    AlignmentHeads(1, (1,), shifted=True).save(out)
    text = f"--decode_from_file={files / 'in.en'}"
    how = "alignments=pharaoh,beam_size=2,extra_length=4"
    flags = f"--output_dir={out}", text, f"--decode_to_file={files / 'lines'}"
    assert decoder.main(["t2t-decoder", *flags, f"--decode_hparams={how},write_beam_scores=True"]) == 0
    rows = [line.split("\t") for line in (files / "lines").read_text(encoding="utf-8").splitlines()]
    assert [len(row) for row in rows] == [3, 3, 3]
    assert rows[1] == ["", "0.00", ""]
    assert len(rows[0][2].split()) == len(rows[0][0].split())

    scored = f"{how},token_scores=True,alternatives=2"
    assert decoder.main(["t2t-decoder", *flags, "--output_format=jsonl", f"--decode_hparams={scored}"]) == 0
    objects = [json.loads(line) for line in (files / "lines").read_text(encoding="utf-8").splitlines()]
    assert [one["text"] for one in objects] == [row[0] for row in rows]
    assert len(objects[0]["tokens"][0]["alternatives"]) == 2
    assert sum(token["log_prob"] for token in objects[0]["tokens"]) < 0

    (files / "pairs").write_text("the dog\tder Hund\n", encoding="utf-8")
    score = f"--output_dir={out}", f"--score_file={files / 'pairs'}", f"--decode_hparams={scored}"
    capsys.readouterr()
    assert decoder.main(["t2t-decoder", *score, "--output_format=jsonl"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert found["log_prob"] == pytest.approx(sum(token["log_prob"] for token in found["tokens"]), abs=1e-4)
    assert [word["text"] for word in found["words"]] == ["der", "Hund"]
    assert decoder.main(["t2t-decoder", *score[:2]]) == 0
    assert float(capsys.readouterr().out) == pytest.approx(found["log_prob"], abs=1e-3)


@pytest.mark.slow
def test_terms_have_the_links_of_alignments(out):
    pairs = [pair for pair in zip(SOURCES, TARGETS, strict=True) if all(pair)]
    assert Translator.load(out).term_detailer is None
    AlignmentHeads(1, (2,), shifted=True).save(out)
    asked = Translator.load(out, decode_hparams="alignments=pharaoh")
    links = [details.links for details in aligner.aligned(Translator.load(out), pairs, "")]
    assert [[*one] for one in links] == aligner.align(asked, pairs)
    assert all(links)
