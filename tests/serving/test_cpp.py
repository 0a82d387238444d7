"""`translate.cc`: a program without Python returns the outputs of `Translator`, or one line of error."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import t2t_revival.serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed"),
]

SOURCE = Path(t2t_revival.serving.__file__).with_name("translate.cc")
LINES = [
    "the dog sees 3 houses .",
    "",
    "für Äpfel, Öl und Übermut",
    "ß 👩‍👧 🦓",
    " \t \u3000",
    "a\0b\rc",
    *(f"the cat sees {number} houses" for number in range(60)),
    "",
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program, built as its source's first comment says."""
    folder = tmp_path_factory.mktemp("program")
    shutil.copy(SOURCE, folder)
    _, commands = SOURCE.read_text(encoding="utf-8").split("\n// To build, ", 1)
    lines = re.findall(r"^//   (.*)$", commands, re.MULTILINE)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(["sh", "-ec", "\n".join(lines)], cwd=folder, env={**os.environ, "PATH": path}, check=True)
    return folder / "translate"


@pytest.fixture(scope="module")
def text_ops():
    (package,) = find_spec("tensorflow_text").submodule_search_locations
    return Path(package) / "python" / "ops" / "_sentencepiece_tokenizer.so"


def run(program, *arguments, text="", stdout=subprocess.PIPE):
    command = [str(program), *map(str, arguments)]
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(
        command, input=text.encode(), stdout=stdout, stderr=subprocess.PIPE, env=env, check=False, timeout=300
    )


def check_error(done, message):
    *_, line = done.stderr.decode().splitlines()  # TensorFlow writes its own before
    assert line.startswith("translate: error: ")
    assert message in line
    assert done.returncode == 1
    assert not done.stdout


def test_all_lines_as_the_translator_has_them(program, text_ops, exported_version, translator):
    done = run(program, text_ops, exported_version, text="\n".join([*LINES, ""]))
    assert done.returncode == 0, done.stderr.decode()
    expected = translator.translate(LINES)
    assert any(expected)
    assert done.stdout.decode().split("\n") == [*expected, ""]


def test_a_last_line_without_its_end(program, text_ops, exported_version, translator):
    done = run(program, text_ops, exported_version, text=LINES[0])
    assert done.stdout.decode() == translator.translate(LINES[0]) + "\n"
    assert run(program, text_ops, exported_version).stdout == b""


def test_wrong_usage_and_files(program, text_ops, exported_version, tmp_path):
    for arguments in (), (text_ops,), (text_ops, exported_version, "lines"):
        check_error(run(program, *arguments), "usage: translate TEXT_OPS_LIBRARY SAVED_MODEL_DIR")
    check_error(run(program, tmp_path / "none.so", exported_version), "none.so")
    other = text_ops.with_name("_whitespace_tokenizer.so")
    check_error(run(program, other, exported_version), "Sentencepiece")
    for folder in tmp_path / "nowhere", exported_version.parent:
        check_error(run(program, text_ops, folder), f"{folder}: no saved_model.pb there")
    corrupt = shutil.copytree(exported_version, tmp_path / "corrupt")
    (corrupt / "saved_model.pb").write_bytes(b"no graph")
    check_error(run(program, text_ops, corrupt), str(corrupt))


def test_a_full_disk(program, text_ops, exported_version):
    with open("/dev/full", "wb") as full:
        check_error(
            run(program, text_ops, exported_version, text="cat\n", stdout=full),
            "cannot write the translations",
        )
