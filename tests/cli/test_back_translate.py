"""`t2t-back-translate`: its flags, its end, its errors."""

import gzip
import shlex

import pytest

from t2t_revival import Translation, Translator
from t2t_revival.back_translation.noise import WordNoise
from t2t_revival.cli import back_translate, datagen
from t2t_revival.training.run import Run
from t2t_revival.utils import checked_json
from tests.support.command_lines import last_of_each

LINES = ["the dog sees 3 houses", "", "the cat", "dog " * 40, "houses"]
DECODED = [LINES[number] for number in (0, 2, 4)]
PROBLEM = """
from t2t_revival import registry
from t2t_revival import Text2TextProblem

@registry.register_problem
class UsrLower(Text2TextProblem):
    source_lang, target_lang = "cs", "de"

    def preprocess(self, line, tokenized=False):
        return line.lower()
"""


@pytest.fixture
def mono(tmp_path):
    path = tmp_path / "mono.en.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in LINES).encode()))
    return path


@pytest.fixture
def loads(monkeypatch):
    """Replaces the search by outputs in capitals; collects the sampling methods of its calls."""
    methods = []

    def nbest(translator, lines, on_outputs, **_):
        methods.append(translator.options.sampling_method)
        outputs = [[Translation(line.upper(), -1.0)] for line in lines]
        on_outputs(dict(enumerate(outputs)))
        return outputs

    monkeypatch.setattr(Translator, "nbest", nbest)
    return methods


def run(*flags):
    return back_translate.main(last_of_each(["t2t-back-translate", *map(str, flags)]))


def failure(capsys, status):
    captured = capsys.readouterr()
    assert status == 1
    (line,) = [line for line in captured.err.splitlines() if line.startswith("t2t-back-translate: error: ")]
    return line


@pytest.fixture
def flags(out, mono, tmp_path):
    return [f"--model_dir={out}", f"--mono={mono}", f"--corpus_dir={tmp_path / 'it is back'}"]


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_a_corpus_and_the_next_command(flags, tmp_path, loads, capsys):
    folder = tmp_path / "it is back"
    assert run(*flags) == 0
    captured = capsys.readouterr()
    assert lines(folder / "train.en") == DECODED
    assert lines(folder / "train.de") == [line.upper() for line in DECODED]
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
    assert datagen.command_flags()(words) == words[:1]
    assert loads == ["argmax"]
    assert run(*flags) == 0
    assert capsys.readouterr().out == captured.out
    assert loads == ["argmax"], "nothing is decoded again"


def test_a_reversed_problem_is_reversed_again(flags, out, tmp_path, loads, capsys):
    Run(**{**vars(Run.load(out)), "problem": "translate_ende_rev"}).save(out)
    assert run(*flags) == 0
    assert "next: t2t-datagen --problem=translate_ende --data_source" in capsys.readouterr().out
    assert lines(tmp_path / "it is back" / "train.de") == DECODED


def test_the_other_direction_of_a_problem_without_a_reverse(flags, out, tmp_path, loads, capsys):
    package = tmp_path / "usr_lower"
    package.mkdir()
    (package / "__init__.py").write_text(PROBLEM)
    Run(**{**vars(Run.load(out)), "problem": "usr_lower"}).save(out)
    assert run(*flags, f"--t2t_usr_dir={package}") == 0
    hint = capsys.readouterr().out.splitlines()[-1]
    assert hint.startswith("next: t2t-datagen --problem=PROBLEM --data_source=")
    assert hint.endswith(f" --t2t_usr_dir={package}")
    assert lines(tmp_path / "it is back" / "train.cs") == DECODED


def test_methods(flags, tmp_path, loads):
    assert run(*flags, "--method=sampling", "--decode_hparams=sampling_temp=0.8,random_seed=3") == 0
    origin = checked_json.load(tmp_path / "it is back" / "origin.json", "")
    assert (origin["sampling_method"], origin["sampling_temp"], origin["random_seed"]) == ("random", 0.8, 3)
    assert loads == ["random"]
    noised = [*flags[:2], f"--corpus_dir={tmp_path / 'noised'}", "--method=noised", "--noise=drop=0.5,seed=1"]
    assert run(*noised) == 0
    assert loads == ["random", "argmax"]
    noise = WordNoise(drop=0.5, seed=1)
    assert lines(tmp_path / "noised" / "train.de") == [
        noise.apply(line.upper(), number) for number, line in enumerate(DECODED, start=1)
    ]


def test_workers(flags, loads, capsys):
    shared = [*flags, "--decode_shards=2"]
    assert run(*shared, "--worker_id=0") == 0  # which has none of one block
    captured = capsys.readouterr()
    assert captured.err.endswith("this worker is done; the last of the 2 to finish writes the corpus\n")
    assert captured.out == ""
    assert run(*shared, "--worker_id=1") == 0
    assert "pairs     3 of 5 lines" in capsys.readouterr().out


def test_other_noise_and_other_models_are_refused_before_decoding(
    flags, out, write_checkpoint, loads, capsys
):
    assert run(*flags) == 0
    capsys.readouterr()
    error = failure(capsys, run(*flags, "--method=noised"))
    assert "holds a corpus with noise none, not drop=0.1,blank=0.1,swap=3,seed=0: give another" in error
    write_checkpoint(out, 12)
    error = failure(capsys, run(*flags))
    assert "holds outputs with model=model.ckpt-7.npz with weights" in error
    assert error.endswith("give another --corpus_dir")
    assert run(*flags, f"--checkpoint={out / 'model.ckpt-7.npz'}") == 0
    assert loads == ["argmax"]
