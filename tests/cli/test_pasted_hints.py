"""Every command that a message proposes can be pasted, in folders whose names need quotes."""

import re
import shlex
import shutil
import subprocess
from importlib import import_module

import pytest

from t2t_revival.cli import decoder
from t2t_revival.data import records
from t2t_revival.model_folder import Run
from t2t_revival.serving.export import serving_steps

SMALL = "--hparams=hidden_size=8,filter_size=8,num_heads=2,num_hidden_layers=1,batch_size=256"
HINT = re.compile(r"(?:next: |^|run |: )(t2t-[a-z-]+ --.*)$", re.MULTILINE)
QUICK = "--decode_hparams=beam_size=1,extra_length=2"
PROBLEM = """
from t2t_revival import registry
from t2t_revival import Text2TextProblem

@registry.register_problem
class UsrHints(Text2TextProblem):
    source_lang, target_lang = "en", "de"
"""


class Shell:
    """Runs commands as if they were typed, and shows which ones their output proposes."""

    def __init__(self, capsys):
        self._capsys = capsys
        self.hints = []
        self.out = ""

    def run(self, line, *more, status=0):
        """Pastes a command, and types more flags behind it."""
        words = [*shlex.split(line), *map(str, more)]
        module = import_module("t2t_revival.cli." + words[0].removeprefix("t2t-").replace("-", "_"))
        found = module.main(words)
        captured = self._capsys.readouterr()
        self.out, self.hints = captured.out, HINT.findall(captured.out + captured.err)
        assert found == status, captured.err
        return self.hints

    def parses(self, line):
        """Parses the flags of a proposed command whose run would take long."""
        program, *words = shlex.split(line)
        module = import_module("t2t_revival.cli." + program.removeprefix("t2t-").replace("-", "_"))
        return module.main.parse([program, *words])


@pytest.fixture
def shell(capsys):
    return Shell(capsys)


@pytest.fixture
def place(tmp_path, monkeypatch, trained):
    """The working directory, with a space and a quote; in it `FOLDER`, a corpus, and `REFERENCE`."""
    folder = tmp_path / "it's a place"
    folder.mkdir()
    shutil.copytree(trained / "corpus", folder / "FOLDER")
    shutil.copy(trained / "corpus" / "test.de", folder / "REFERENCE")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(place, trained):
    """An output_dir in that place."""
    return shutil.copytree(trained / "out", place / "a run")


@pytest.mark.slow
def test_from_data_to_a_score_with_a_users_problem(place, shell):
    package = place / "usr_hinted"
    package.mkdir()
    (package / "__init__.py").write_text(PROBLEM)
    flags = [f"--t2t_usr_dir={package}", "--data_source=FOLDER", "--vocab_size=310"]
    shell.run("t2t-datagen --problem=usr_hints", *flags, f"--data_dir={place / 'da ta'}")
    (train,) = shell.hints
    where = [f"--output_dir={place / 'run'}", SMALL, "--train_steps=1", "--eval_bleu_sentences=0"]
    (average,) = shell.run(train, *where)
    assert average.startswith("t2t-avg-all --output_dir=")
    (decode,) = shell.run(average)
    (score,) = shell.run(decode, QUICK)
    assert score.startswith("t2t-bleu --translation=")
    assert score.endswith(" --target_lang=de")
    assert shell.run(score) == []
    assert "BLEU_cased = " in shell.out
    assert "paper-style BLEU" in shell.out


def test_a_file_is_decoded_and_scored(run, place, shell):
    where = [f"--output_dir={run}", "--decode_from_file=FOLDER/test.en", "--decode_to_file=o u.de"]
    (score,) = shell.run("t2t-decoder", *where, QUICK)
    assert score == "t2t-bleu --translation='o u.de' --reference=REFERENCE --target_lang=de"
    shell.run(score)
    assert "BLEU_cased = " in shell.out


@pytest.mark.slow
def test_checkpoints_are_evaluated_and_the_best_is_used(run, shell):
    flags = [f"--output_dir={run}", "--eval_use_test_set", "--eval_bleu_sentences=0"]
    (decode,) = shell.run("t2t-eval", *flags)
    assert decode.startswith(f"t2t-decoder --output_dir={shlex.quote(str(run))} --checkpoint=")
    assert decode.endswith(" --eval_use_test_set")
    shell.run(decode, QUICK)
    assert "on test, 4 sentences" in shell.out


def test_averages_of_each_are_evaluated(run, shell):
    (evaluate,) = shell.run("t2t-avg-all --n=1", f"--model_dir={run}")
    assert evaluate == f"t2t-eval --output_dir={shlex.quote(str(run / 'avg'))}"
    shell.run(evaluate, "--eval_bleu_sentences=0")


def test_all_translations_are_scored(run, shell):
    (score,) = shell.run("t2t-translate-all --source=FOLDER/test.en --beam_size=1", f"--model_dir={run}")
    shell.run(score)
    assert "best BLEU_cased: step 7" in shell.out


@pytest.mark.parametrize("command", ["t2t-eval --eval_bleu_sentences=0", f"t2t-decoder {QUICK}"])
def test_data_that_is_gone_is_made_for_the_models_vocabulary(run, place, shell, command):
    gone = place / "it's gone"
    Run(**{**vars(Run.load(run)), "data_dir": str(gone)}).save(run)
    (make,) = shell.run(command, f"--output_dir={run}", status=1)
    vocabulary = run / Run.load(run).vocabulary
    quoted = map(shlex.quote, map(str, (gone, vocabulary)))
    start = "t2t-datagen --problem=translate_ende --data_dir={} --data_source=FOLDER --vocab_file={}"
    assert make == start.format(*quoted)
    shell.run(make)
    shell.run(command, f"--output_dir={run}")


def test_data_with_another_vocabulary(run, place, shell):
    shell.run("t2t-datagen --problem=translate_ende --data_source=FOLDER --vocab_size=300 --data_dir=other")
    evaluate = ["t2t-eval --eval_bleu_sentences=0", f"--output_dir={run}"]
    (make,) = shell.run(*evaluate, "--data_dir=other", status=1)
    assert f"--data_source={shlex.quote(str(place / 'FOLDER'))}" in make
    shell.run(make)
    shell.run(*evaluate, f"--data_dir={run / 'data'}")


@pytest.mark.slow
def test_a_shard_that_is_damaged_or_missing_is_made_again(run, place, trained, shell):
    data = shutil.copytree(trained / "data", place / "da ta")
    shard = data / records.shard_name("translate_ende", "dev", 0, 1)
    decode = [f"t2t-decoder {QUICK}", f"--output_dir={run}", f"--data_dir={data}"]
    for harm in (
        lambda: shard.write_bytes(shard.read_bytes()[:-3]),
        lambda: shard.write_bytes(shard.read_bytes()[:-3] + b"abc"),
        shard.unlink,
    ):
        harm()
        (make,) = shell.run(*decode, status=1)
        shell.run(make)
        shell.run(*decode)


def test_several_machines(place, shell):
    (train,) = shell.run("t2t-make-tf-configs --masters=a:1,b:2")
    assert shell.parses(train).config.strategy == "multi_worker"
    asked = "--data_source=FOLDER --vocab_size=310 --data_dir='da ta'"
    (make,) = shell.run(f"{train} {asked}", f"--output_dir={place / 'run'}", status=1)
    assert (
        make
        == "t2t-datagen --problem=translate_ende --data_dir='da ta' --data_source=FOLDER --vocab_size=310"
    )
    shell.run(make)


@pytest.mark.parametrize("trees", [False, True])
def test_an_exported_model_is_asked(place, shell, trees):
    said = serving_steps(place / "export", "usr_hints", trees, str(place))
    asked = [line.partition(": ")[2] for line in said.splitlines() if ": t2t-" in line]
    assert asked[1].startswith("t2t-server ")
    for line, flag in zip(asked, ("saved_model", "saved_model", "server"), strict=True):
        flags = shell.parses(line)
        assert flag in flags.given
        assert (flags.problem, flags.t2t_usr_dir) == (("usr_hints", str(place)) if trees else (None, None))
    assert shell.parses(asked[0]).saved_model == str(place / "export")


def test_scores_stand_beside_their_pairs(run, place, shell):
    (place / "pairs").write_text("the dog\tder Hund\n")
    decoder.main(["t2t-decoder", f"--output_dir={run}", "--score_file=pairs", "--decode_to_file=sco res"])
    said = shell._capsys.readouterr().err
    command = said.splitlines()[-1].removeprefix("next: ")
    assert command == "paste 'sco res' pairs | sort -g | head"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"-\d+\.\d+\tthe dog\tder Hund\n", done.stdout)
