"""`t2t-back-translate`: its flags, its end, its errors."""

import gzip
import shlex

import pytest

from t2t_revival.cli import back_translate, datagen
from t2t_revival.model_folder import Run
from tests.support.command_lines import last_of_each
from tests.support.decoded_blocks import lines

LINES = ["the dog sees 3 houses", "", "the cat", "dog " * 40, "houses"]
DECODED = [LINES[number] for number in (0, 2, 4)]
DECODING = "--decode_hparams=beam_size=2,extra_length=3"
PROBLEM = """
from t2t_revival import registry
from t2t_revival import Text2TextProblem

@registry.register_problem
class UsrLower(Text2TextProblem):
    source_lang, target_lang = "cs", "de"

    def preprocess(self, line, tokenized=False):
        return line.lower()
"""


def run(*flags):
    return back_translate.main(last_of_each(["t2t-back-translate", *map(str, flags)]))


@pytest.fixture
def flags(out, tmp_path):
    mono = tmp_path / "mono.en.gz"
    mono.write_bytes(gzip.compress("".join(f"{line}\n" for line in LINES).encode()))
    return [f"--model_dir={out}", f"--mono={mono}", f"--corpus_dir={tmp_path / 'it is back'}", DECODING]


def test_a_corpus_and_the_next_command(flags, tmp_path, capsys):
    folder = tmp_path / "it is back"
    assert run(*flags) == 0
    captured = capsys.readouterr()
    assert lines(folder / "train.en") == DECODED
    assert len(lines(folder / "train.de")) == len(DECODED)
    *said, hint = captured.out.splitlines()
    assert said == [
        f"corpus    {folder / 'train.de'} of the model's outputs, {folder / 'train.en'} of the text",
        "pairs     3 of 5 lines",
        "left out  2 blank or longer than max_length, 0 with an empty output",
    ]
    words = shlex.split(hint.removeprefix("next: "))
    assert words == [
        "t2t-datagen",
        "--problem=translate_ende_rev",
        f"--data_source=parallel=FOLDER,back={folder}",
        "--data_dir=DATA_DIR",
    ]
    assert datagen.main.parse(words)
    assert run(*flags) == 0
    assert capsys.readouterr().out == captured.out


def test_a_reversed_problem_is_reversed_again(flags, out, tmp_path, capsys):
    Run(**{**vars(Run.load(out)), "problem": "translate_ende_rev"}).save(out)
    assert run(*flags) == 0
    assert "next: t2t-datagen --problem=translate_ende --data_source" in capsys.readouterr().out
    assert lines(tmp_path / "it is back" / "train.de") == DECODED


def test_the_other_direction_of_a_problem_without_a_reverse(flags, out, tmp_path, capsys):
    package = tmp_path / "usr_lower"
    package.mkdir()
    (package / "__init__.py").write_text(PROBLEM)
    Run(**{**vars(Run.load(out)), "problem": "usr_lower"}).save(out)
    assert run(*flags, f"--t2t_usr_dir={package}") == 0
    hint = capsys.readouterr().out.splitlines()[-1]
    assert hint.startswith("next: t2t-datagen --problem=PROBLEM --data_source=")
    assert hint.endswith(f" --t2t_usr_dir={package}")
    assert lines(tmp_path / "it is back" / "train.cs") == DECODED
