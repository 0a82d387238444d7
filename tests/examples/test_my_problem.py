"""examples/my_problem: what its README says, run as it stands there; and what it says of wrong input."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template

import pytest

from t2t_revival import T2TError, registry
from t2t_revival.cli import datagen, trainer
from tests.support.commands import run

EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGE = EXAMPLES / "my_problem"


@pytest.fixture
def registered() -> None:
    registry.import_usr_dir(str(PACKAGE))


def run_readme(*training: str) -> str:
    """Runs the README's commands here, with more flags for the training; returns their standard output."""
    blocks = re.findall(r"```sh\n(.*?)```", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5, "data, training, decoding, scores, export"
    variables: dict[str, str] = {}
    said = ""
    for line in filter(None, "".join(blocks).replace("\\\n", " ").splitlines()):
        name, is_set, value = line.partition("=")
        if is_set and name.isupper():
            variables[name] = value
            continue
        before, pipe, command = Template(line).substitute(variables).rpartition(" | ")
        if not command.startswith("t2t-"):
            subprocess.run(["bash", "-c", command], check=True)
            continue
        typed = subprocess.check_output(["bash", "-c", before], text=True) if pipe else ""
        more = training if command.startswith("t2t-trainer") else ()
        said += run(*shlex.split(command), *more, stdin=typed).stdout
    return said


@pytest.mark.slow
@pytest.mark.parametrize("updates", [60, pytest.param(600, marks=pytest.mark.nightly)])
def test_the_commands_of_the_readme(updates: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trains for a few updates, and nightly for as many as the problem's hparams have."""
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    said = run_readme(f"--train_steps={updates}")
    outputs, targets = (
        (tmp_path / f"dates/test.{kind}").read_text(encoding="utf-8").splitlines()
        for kind in ("outputs", "targets")
    )
    assert len(outputs) == 600
    assert re.search(r"^BLEU_cased *= *\d", said, re.MULTILINE)
    assert re.search(r"^    step        loss    accuracy        bleu        chrf$", said, re.MULTILINE)
    if updates == 600:
        right = sum(output == target for output, target in zip(outputs, targets, strict=True))
        assert right / len(outputs) > 0.8, "dates that were not seen in training"
        assert "\nthe fourteenth of July eighteen eighty-nine\n" in said, "decoded"
        assert said.endswith("\nthe fourth of May twenty thirty-one\n"), "by the exported model"


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("1800-01-01", "the first of January eighteen hundred"),
        ("1905-02-12", "the twelfth of February nineteen oh five"),
        ("2000-03-20", "the twentieth of March two thousand"),
        ("2009-05-21", "the twenty-first of May two thousand and nine"),
        ("2010-06-13", "the thirteenth of June twenty ten"),
        ("2099-12-31", "the thirty-first of December twenty ninety-nine"),
    ],
)
def test_dates_are_said_so(written: str, spoken: str) -> None:
    from datetime import date

    maker = runpy.run_path(str(PACKAGE / "make_corpus.py"))
    assert maker["spoken"](date.fromisoformat(written)) == spoken


def corpus(folder: Path, text: str) -> str:
    file = folder / "dates.tsv"
    file.write_bytes(text.encode("latin-1"))
    return str(file)


@pytest.mark.usefixtures("registered")
def test_what_is_held_out_is_in_no_other_split(tmp_path: Path) -> None:
    file = corpus(tmp_path, "# comment\n" + "".join(f"{n}\tn{n}\n" for n in range(100)))
    problem = registry.problem("spoken_dates", data_source=file)
    metadata = problem.generate_data(tmp_path / "data")
    assert {split: counts.examples for split, counts in metadata.splits.items()} == {
        "train": 90,
        "dev": 5,
        "test": 5,
    }
    source = problem.make_source(file, None)
    pairs = [pair for split in source.splits() for pair in source.pairs(split, 0, source.count(split))]
    assert sorted(pairs) == sorted((str(n), f"n{n}") for n in range(100))
    assert list(source.pairs("dev", 1, 3)) == [("20", "n20"), ("40", "n40")]


@pytest.mark.usefixtures("registered")
def test_digits_are_pieces_and_the_vocabulary_is_small(tmp_path: Path) -> None:
    file = corpus(tmp_path, "".join(f"19{n:02}\tnineteen {n}\n" for n in range(100)) * 3)
    problem = registry.problem("spoken_dates", data_source=file)
    problem.generate_data(tmp_path / "data")
    vocabulary = problem.open(tmp_path / "data").vocabularies.inputs
    assert vocabulary.size <= problem.approx_vocab_size == 450
    assert len(vocabulary.encode("1984")) == 4
    assert vocabulary.decode(vocabulary.encode("1984")) == "1984"


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("command", [datagen, trainer])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file; run python make_corpus.py > dates.tsv"),
        ("", "dates.tsv: too few pairs for train, dev and test: 0"),
        ("# comment\n1\tone\n2 two\n", "dates.tsv, line 3: no tab; expected WRITTEN TAB SPOKEN"),
        ("1\tone\n2\tf\xfcnf\n", "dates.tsv: line 2 is not UTF-8 text: convert the file to UTF-8"),
    ],
)
def test_a_corpus_that_cannot_be_read(text, message, command, tmp_path: Path, capsys) -> None:
    file = corpus(tmp_path, text) if text is not None else str(tmp_path / "nowhere.tsv")
    flags = ["--problem=spoken_dates", f"--data_dir={tmp_path / 'data'}", f"--data_source={file}"]
    flags += [f"--t2t_usr_dir={PACKAGE}"]
    if command is trainer:
        flags += ["--hparams_set=spoken_dates_tiny", f"--output_dir={tmp_path / 'model'}"]
    assert command.main(["t2t-command", *flags]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("t2t-command: error: ")
    assert last.endswith(message)


@pytest.mark.usefixtures("registered")
def test_no_corpus_is_named(tmp_path: Path) -> None:
    with pytest.raises(T2TError, match="--data_source is missing: give a file with WRITTEN TAB SPOKEN"):
        registry.problem("spoken_dates").generate_data(tmp_path)


def test_a_fault_in_the_users_code_has_pythons_traceback(tmp_path: Path) -> None:
    package = tmp_path / "usr_faulty"
    shutil.copytree(PACKAGE, package)
    code = (package / "my_problem.py").read_text(encoding="utf-8")
    code = code.replace("SpokenDates", "UsrFaulty").replace("def spoken_dates_tiny", "def usr_faulty_tiny")
    (package / "my_problem.py").write_text(code.replace("len(self._pairs[split])", "self.pears"))
    file = corpus(tmp_path, "".join(f"{n}\tn{n}\n" for n in range(100)))
    flags = [f"--t2t_usr_dir={package}", "--problem=usr_faulty", f"--data_source={file}"]
    with pytest.raises(AttributeError, match="'PairsFile' object has no attribute 'pears'"):
        datagen.main(["t2t-datagen", *flags, f"--data_dir={tmp_path / 'data'}"])
