"""`t2t-parseval`: its table, and sentences that are not counted."""

import gzip
import io
import sys

import pytest

from t2t_revival.cli import parseval
from t2t_revival.metrics.parseval import score_corpus
from t2t_revival.parsing.trees import parse
from tests.support.line_corpus import write_lines

GOLD = [
    "(TOP (S (NP-SBJ (DT The) (NN dog)) (VP (VBZ sleeps)) (. .)))",
    "(S (NP (PRP He)) (VP (VBZ sees) (NP (PRP her))))",
    f"(S (NP (NN word)) (VP {'(VB is) ' * 40}))",
]
PREDICTED = [
    "(S (NP (XX The) (XX dog)) (VP (XX sleeps)) (XX .))",
    "(S (NP (XX He)) (VP (XX sees)) (NP (XX her)))",
    f"(S (VP (XX word) {'(XX is) ' * 40}))",
]


@pytest.fixture
def files(tmp_path):
    return [write_lines(tmp_path / "dev.gold", GOLD), write_lines(tmp_path / "dev.out", PREDICTED)]


def run(gold, predicted):
    return parseval.main(["t2t-parseval", f"--gold={gold}", f"--predicted={predicted}"])


def test_table(files, capsys):
    assert run(*files) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len({len(line) for line in lines}) == 1, "columns stand below their titles"
    head, *rows = [line.split() for line in lines]
    assert head[:6] == ["words", "sentences", "F1", "precision", "recall", "exact"]
    # all: 10 gold brackets, 9 predicted, 7 matched: S NP VP; S NP NP; S; <=40: 6 of 7 and 7
    assert rows == [
        ["all", "3", "73.68", "77.78", "70.00", "33.33", "0.00", "100.00", "100.00"],
        ["<=40", "2", "85.71", "85.71", "85.71", "50.00", "0.00", "100.00", "100.00"],
        ["1-10", "2", "85.71", "85.71", "85.71", "50.00", "0.00", "100.00", "100.00"],
        ["41+", "1", "40.00", "50.00", "33.33", "0.00", "0.00", "100.00", "100.00"],
    ]
    overall = score_corpus(map(parse, GOLD), map(parse, PREDICTED)).overall
    assert (overall.gold, overall.predicted, overall.matched) == (10, 9, 7)


def test_skipped_sentences_are_counted(files, capsys):
    write_lines(files[0], ["(NP (. .))", *GOLD])
    write_lines(files[1], ["(NP (XX .))", *PREDICTED])
    assert run(*files) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["all", "3"]
    assert lines[-1] == "sentences of punctuation alone, not counted: 1"


def test_the_standard_input_pretty_printed_and_gz(files, capsys, monkeypatch):
    assert run(*files) == 0
    expected = capsys.readouterr().out
    pretty = "\n\n".join(parse(tree).pformat(margin=20) for tree in GOLD)
    zipped = files[0].with_suffix(".gz")
    zipped.write_bytes(gzip.compress(pretty.encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(files[0].read_bytes())))
    for gold in (zipped, "-"):
        assert run(gold, files[1]) == 0
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize("none", ["(())", "()", "( )", "(TOP)", "(ROOT ( ))", "", "  "])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_sentence_without_a_parse(files, none, place, capsys):
    """Counted as EVALB's error sentence: in no measure."""
    others = [number for number in range(3) if number != place]
    for path, trees in zip(files, (GOLD, PREDICTED), strict=True):
        write_lines(path, [trees[number] for number in others])
    assert run(*files) == 0
    expected = capsys.readouterr().out
    write_lines(files[0], GOLD)
    write_lines(files[1], [none if number == place else tree for number, tree in enumerate(PREDICTED)])
    assert run(*files) == 0
    *table, last = capsys.readouterr().out.splitlines(keepends=True)
    assert "".join(table) == expected
    counts = score_corpus(
        (parse(GOLD[number]) for number in others), (parse(PREDICTED[number]) for number in others)
    ).overall
    brackets = (3, 4, 3)[place]  # S NP VP; S NP VP NP; S NP VP
    f1 = 200 * counts.matched / (counts.gold + counts.predicted + brackets)
    assert last == f"sentences without a tree, not counted, as in EVALB: 1 (F1 if they were: {f1:.2f})\n"


def test_the_same_sentence_without_any_tree(files, capsys):
    assert run(*files) == 0
    expected = capsys.readouterr().out
    for path, trees in zip(files, (GOLD, PREDICTED), strict=True):
        write_lines(path, [trees[0], "", *trees[1:], "", ""])
    assert run(*files) == 0
    assert capsys.readouterr().out == expected
