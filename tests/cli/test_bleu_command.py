"""`t2t-bleu`: output for one translation, and forms of its files."""

import gzip
import os
import re
import sys
import threading
import unicodedata

import pytest
from sacrebleu.metrics import BLEU

from t2t_revival.cli import bleu
from t2t_revival.metrics.bleu import chrf_score, paper_style_bleu, sacrebleu_score, t2t_bleu
from tests.support.line_corpus import write_lines

TRANSLATIONS = ["Ein Hund läuft durch den Park.", "Zwei E-Bikes stehen vor dem Haus."]
REFERENCES = ["Ein Hund läuft durch den grünen Park.", "Zwei E-Bikes stehen vor einem Haus."]


@pytest.fixture
def files(tmp_path):
    return [write_lines(tmp_path / "out.de", TRANSLATIONS), write_lines(tmp_path / "ref.de", REFERENCES)]


def run(translation, reference, *more):
    return bleu.main(["t2t-bleu", f"--translation={translation}", f"--reference={reference}", *more])


def test_scores(files, capsys):
    write_lines(files[0], [TRANSLATIONS[0].lower(), TRANSLATIONS[1]])
    given = [TRANSLATIONS[0].lower(), TRANSLATIONS[1]], REFERENCES
    assert run(*files, "--target_lang=de") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"BLEU_uncased = {sacrebleu_score(*given, lowercase=True)}",
        f"BLEU_cased = {sacrebleu_score(*given)}",
        f"chrF2 = {chrf_score(*given)}",
        "as T2T's t2t-bleu (its own tokeniser; not comparable to sacreBLEU): "
        f"uncased {t2t_bleu(*given, lowercase=True):.2f}, cased {t2t_bleu(*given):.2f}",
        "paper-style BLEU (Moses tokens, compounds split; not comparable to sacreBLEU) = "
        f"{paper_style_bleu(*given, 'de')}",
    ]


def test_another_unicode_form_than_that_of_the_references_is_named(files, capsys):
    assert run(*files) == 0
    assert "Unicode" not in capsys.readouterr().err
    for decomposed, other in (files, files[::-1]):
        before = decomposed.read_text(encoding="utf-8")
        write_lines(decomposed, [unicodedata.normalize("NFD", line) for line in before.splitlines()])
        assert run(decomposed, other) == 0
        assert f"{decomposed}: 1 of 2 lines are in another Unicode form" in capsys.readouterr().err
        write_lines(decomposed, before.splitlines())


def test_one_variant(files, capsys):
    assert run(*files, "--bleu_variant=cased") == 0
    out = capsys.readouterr().out
    assert "uncased" not in out
    assert re.search(r": cased \d+\.\d\d$", out, re.MULTILINE)


def test_the_papers_score_needs_a_language_and_splits_no_compounds_but_german_ones(files, capsys):
    assert run(*files) == 0
    assert "paper-style" not in capsys.readouterr().out
    assert run(*files, "--target_lang=fr") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("paper-style BLEU (Moses tokens; not comparable to sacreBLEU) = ")
    assert last.endswith(str(paper_style_bleu(TRANSLATIONS, REFERENCES, "fr")))


def test_files_may_come_in_any_form(files, tmp_path, capsys, monkeypatch):
    """The standard input, pipes, and gzip."""
    packed, pipes = ([tmp_path / f"{path.name}.{form}" for path in files] for form in ("gz", "pipe"))
    for path, zipped, pipe in zip(files, packed, pipes, strict=True):
        zipped.write_bytes(gzip.compress(path.read_bytes()))
        os.mkfifo(pipe)
        threading.Thread(target=pipe.write_bytes, args=[path.read_bytes()], daemon=True).start()
    outputs = set()
    for given in (files, packed, pipes, ["-", files[1]], [files[0], "-"]):
        typed = files[given.index("-")] if "-" in given else os.devnull
        with open(typed, encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert run(*given) == 0
        outputs.add(capsys.readouterr().out)
    assert len(outputs) == 1


def test_tabs_of_nbest_are_warned_of(tmp_path, capsys):
    reference = write_lines(tmp_path / "ref.de", ["Ein Hund läuft.", "Zwei\tHäuser stehen dort."])
    nbest = write_lines(tmp_path / "nbest", ["Ein Hund läuft.\tEin Hund rennt.", "Zwei\tHäuser stehen."])
    assert run(nbest, reference) == 0
    assert capsys.readouterr().err.startswith(
        f"warning: {nbest}: 1 of 2 lines contain tabs, as written with return_beams"
    )
    plain = write_lines(tmp_path / "plain", ["Ein Hund läuft.", "Zwei\tHäuser stehen."])
    assert run(plain, reference) == 0
    assert "tabs" not in capsys.readouterr().err, "a tab of the reference's own"


@pytest.fixture
def chinese(tmp_path):
    return [
        write_lines(tmp_path / "out", ["我们喜欢这只狗。"]),
        write_lines(tmp_path / "ref", ["我们喜欢这只猫。"]),
    ]


@pytest.mark.parametrize("flags", [["--target_lang=zh"], ["--target_lang=zho_Hans"]])
def test_chinese_has_its_own_tokenizer(chinese, flags, capsys):
    assert run(*chinese, *flags) == 0
    lines = capsys.readouterr().out.splitlines()
    right = BLEU(tokenize="zh").corpus_score(["我们喜欢这只狗。"], [["我们喜欢这只猫。"]]).score
    assert right > 50
    assert lines[1].startswith(f"BLEU_cased = {right:.2f} nrefs:1|case:mixed|eff:no|tok:zh|")
    assert len(lines) == 3  # the others count words between spaces


@pytest.mark.parametrize("form", ["--reference={0},{1}", "--reference={0} --reference={1}"])
def test_several_references(tmp_path, form, capsys):
    output = write_lines(tmp_path / "out", ["a little cat sat down here"])
    texts = ["the small cat sat down"], ["a little cat has sat down"]
    files = [write_lines(tmp_path / f"ref{number}", lines) for number, lines in enumerate(texts)]
    assert bleu.main(["t2t-bleu", f"--translation={output}", *form.format(*files).split()]) == 0
    lines = capsys.readouterr().out.splitlines()
    right = BLEU().corpus_score(["a little cat sat down here"], list(texts)).score
    assert lines[1].startswith(f"BLEU_cased = {right:.2f} nrefs:2|")
    assert lines[2].startswith("chrF2 = ")
    assert "nrefs:2" in lines[2]
    assert len(lines) == 3


def test_a_file_name_with_a_comma(files, capsys):
    files[1] = files[1].rename(files[1].with_name("ref,new.de"))
    assert run(*files) == 0
    assert "nrefs:1" in capsys.readouterr().out
