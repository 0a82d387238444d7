"""From the sample corpus to translations and BLEU, by the commands that a user types."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from t2t_revival import Translator, sample_corpus
from tests.support.commands import run, run_process

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sample")


@pytest.fixture
def flags(sample_model: Path) -> list[str]:
    return ["--problem=translate_ende", "--hparams_set=tiny", f"--output_dir={sample_model}"]


@pytest.fixture(scope="module")
def decoded(sample_model: Path, sample_data: Path, place: Path) -> subprocess.CompletedProcess:
    model, data = f"--output_dir={sample_model}", f"--data_dir={sample_data}"
    return run_process(
        "t2t-decoder", model, data, "--dataset_split=test", f"--decode_to_file={place / 'test.de'}"
    )


def test_the_language_is_learned(decoded: subprocess.CompletedProcess) -> None:
    score = re.search(r"BLEU (\d+\.\d+) on test", decoded.stdout)
    assert score is not None, decoded.stdout
    assert float(score[1]) > 40
    assert "tok:13a" in decoded.stdout


def test_a_file_is_translated_line_by_line(place: Path, flags: list[str]) -> None:
    source = place / "in.en"
    text = ["The old dog sleeps.", "", "   ", "Zebras 🦓 juggle\tquietly", "x " * 400]
    source.write_text("\n".join(text) + "\n", encoding="utf-8")
    out = place / "out.de"
    done = run("t2t-decoder", *flags, f"--decode_from_file={source}", f"--decode_to_file={out}")
    translated = out.read_text(encoding="utf-8").split("\n")
    assert len(translated) == len(text) + 1
    assert translated[0].endswith(".")
    assert translated[1] == translated[2] == ""
    assert "line 5" in done.stderr, "a line that is too long is decoded all the same, with a warning"


def test_the_same_from_python_and_in_any_company(sample_model: Path, flags: list[str]) -> None:
    source = ["The old dog sleeps.", "The women see a small house.", "He opens the door."]
    done = run("t2t-decoder", *flags, "--decode_from_file=-", stdin="\n".join(source) + "\n")
    translator = Translator.load(sample_model)
    assert translator.checkpoint.averaged
    assert done.stdout.splitlines() == translator.translate(source)
    assert done.stdout.splitlines() == [translator.translate([line])[0] for line in source]
    best = translator.nbest(source, n=3)
    assert all(b[0].score >= b[1].score >= b[2].score for b in best)
    assert [b[0].text for b in best] == translator.translate(source)


def test_bleu_of_files_is_the_decoders(place: Path, decoded: subprocess.CompletedProcess) -> None:
    reference = place / "reference.de"
    reference.write_text("".join(f"{line}\n" for line in sample_corpus.lines("test.de")), encoding="utf-8")
    done = run("t2t-bleu", f"--translation={place / 'test.de'}", f"--reference={reference}")
    by_decoder = re.search(r"BLEU (\d+\.\d+) on test", decoded.stdout)
    assert by_decoder is not None
    assert re.search(rf"BLEU_cased *= *{re.escape(by_decoder[1])}", done.stdout), done.stdout
