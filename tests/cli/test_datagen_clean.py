"""t2t-datagen --clean: its table and sample, and the data and problems that do not go with it."""

import pytest

from t2t_revival.cli import datagen
from tests.cli.conftest import failure
from tests.support.line_corpus import write_pairs

TABLE = """\
rule         dropped
empty side         1  a side is empty or blank
broken text        1  control characters, U+FFFD, or UTF-8 that was read as Windows-1252
equal sides        1  source and target are the same text
long side          0  a side is longer than 1,000 characters
uneven             0  one side has over 30 characters and 3 times the other's
few letters        0  less than 50% of a side's characters are letters
duplicate          2  an earlier pair has the same source and target
"""


@pytest.fixture
def corpus(tmp_path):
    good = [(f"{n} dogs see the {n * n} dogs", f"{n} Hunde sehen die {n * n} Hunde") for n in range(60)]
    train = [*good, ("same", "same"), ("", "x"), good[0], ("CafÃ©", "Lokal"), good[1]]
    return write_pairs(tmp_path / "corpus", {"train": train, "dev": good[:4]})


def generate(corpus, data, *more, command=datagen, problem="translate_ende"):
    flags = [f"--problem={problem}", f"--data_source={corpus}", f"--data_dir={data}", "--vocab_size=300"]
    return command.main(["t2t-command", *flags, *more])


def test_rules_are_a_table_and_their_pairs_a_sample(corpus, tmp_path, capsys):
    data = tmp_path / "data"
    assert generate(corpus, data, "--clean") == 0
    out, err = capsys.readouterr()
    assert TABLE in out
    assert f"dropped     the first pairs of each rule, {data}/translate_ende.cleaned.txt\n" in out
    assert [line.split()[:4] for line in out.splitlines()[1:3]] == [
        ["train", "60", "0", "10"],
        ["dev", "4", "0", "1"],
    ]
    assert err.splitlines()[1] == "cleaning the pairs of train"
    assert err.splitlines()[2].startswith("65 pairs in 0:")
    assert err.splitlines()[-1].startswith("69 pairs in 0:")
    assert (data / "translate_ende.cleaned.txt").read_text(encoding="utf-8").splitlines() == [
        "empty side\t\tx",
        "broken text\tCafÃ©\tLokal",
        "equal sides\tsame\tsame",
        "duplicate\t0 dogs see the 0 dogs\t0 Hunde sehen die 0 Hunde",
        "duplicate\t1 dogs see the 1 dogs\t1 Hunde sehen die 1 Hunde",
    ]


def test_without_it_nothing_is_cleaned(corpus, tmp_path, capsys):
    assert generate(corpus, tmp_path / "data") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split()[:4] == ["train", "64", "1", "10"]
    assert "rule" not in out
    assert "clean" not in f"{out}{err}".replace(str(tmp_path), "")


def test_the_data_of_the_other_direction_is_the_same(corpus, tmp_path, capsys):
    assert generate(corpus, tmp_path / "data", "--clean", problem="translate_ende_rev") == 0
    assert TABLE in capsys.readouterr().out
    status = generate(corpus, tmp_path / "data", "--noclean", problem="translate_ende_rev")
    assert "holds translate_ende made with clean=True, not False" in failure(capsys, status)
