"""Commands on a model of a problem from a user's package, with and without `--t2t_usr_dir`."""

import dataclasses

import pytest

from t2t_revival.cli import avg_all, datagen, decoder, translate_all
from t2t_revival.data import workers
from t2t_revival.model_folder import Run

SHOUTED = """
from t2t_revival import registry
from t2t_revival import Text2TextProblem
from t2t_revival.problems.problem import Finished

@registry.register_problem
class UsrShouted(Text2TextProblem):
    source_lang, target_lang = "en", "de"

    def postprocess(self, inputs, output):
        return Finished(f"<{output}>!")
"""

FAILING = """
import multiprocessing
from t2t_revival import registry
from t2t_revival import Source
from t2t_revival import Text2TextProblem

class Failing(Source):
    kind, name, source_lang, target_lang = "failing", "failing", "up", "down"

    def splits(self):
        return ("train", "dev")

    def count(self, split):
        return 200

    def pairs(self, split, start, stop):
        for n in range(start, stop):
            if split == "train" and n == 150 and multiprocessing.parent_process():
                raise ValueError("no such number")
            yield f"count to {n} please", f"from {n} down"

@registry.register_problem
class UsrFailing(Text2TextProblem):
    source_lang, target_lang = "up", "down"

    def make_source(self, data_source, tmp_dir):
        return Failing()
"""


@pytest.fixture
def package(tmp_path):
    """The user's package."""
    folder = tmp_path / "usr_shouting"
    folder.mkdir()
    (folder / "__init__.py").write_text(SHOUTED)
    return folder


@pytest.fixture
def usr_out(out):
    """The output_dir of a model of that problem."""
    dataclasses.replace(Run.load(out), problem="usr_shouted").save(out)
    return out


@pytest.mark.parametrize("given", [True, False])
def test_outputs_are_finished_where_the_problem_is_known(usr_out, package, tmp_path, capsys, given):
    source = tmp_path / "in.en"
    source.write_text("the dog\n")
    flags = ["--decode_hparams=extra_length=3", *([f"--t2t_usr_dir={package}"] if given else [])]
    assert (
        decoder.main(["t2t-decoder", f"--output_dir={usr_out}", f"--decode_from_file={source}", *flags]) == 0
    )
    shown = capsys.readouterr()
    line = shown.out.removesuffix("\n")
    assert (line[:1] == "<" and line[-2:] == ">!") == given
    warning = "warning: the problem usr_shouted is not registered"
    assert (warning in shown.err) != given


def test_all_checkpoints_are_not_translated_by_a_problem_that_is_not_known(
    usr_out, package, tmp_path, capsys
):
    source = tmp_path / "in.en"
    source.write_text("the dog\n")
    assert translate_all.main(["t2t-translate-all", f"--model_dir={usr_out}", f"--source={source}"]) == 1
    assert "unknown problem 'usr_shouted'" in capsys.readouterr().err
    assert not (usr_out / "translations").exists()


def test_the_next_command_asks_for_the_package(usr_out, package, capsys):
    assert avg_all.main(["t2t-avg-all", f"--output_dir={usr_out}"]) == 0
    hint = f"next: t2t-decoder --output_dir={usr_out} --t2t_usr_dir="
    assert capsys.readouterr().out.endswith(f"{hint}YOUR_PACKAGE\n")
    assert avg_all.main(["t2t-avg-all", f"--output_dir={usr_out}", f"--t2t_usr_dir={package}"]) == 0
    assert capsys.readouterr().out.endswith(f"{hint}{package}\n")


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """Runs t2t-datagen with a package whose source fails in its processes."""

    def generate(code):
        folder = tmp_path / "usr_failing"
        folder.mkdir()
        (folder / "__init__.py").write_text(code)
        monkeypatch.setattr(workers, "PAIRS_PER_WORKER", 50)
        monkeypatch.setattr(workers, "cores", lambda: 2)
        flags = [f"--data_dir={tmp_path}/data", "--problem=usr_failing", "--vocab_size=290"]
        return datagen.main(["t2t-datagen", f"--t2t_usr_dir={folder}", *flags])

    return generate


@pytest.mark.parametrize("importable", [True, False])
def test_a_fault_in_a_worker_is_shown_with_its_line(importable, failing, tmp_path, monkeypatch):
    if importable:
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    line = 1 + FAILING[: FAILING.index("raise ValueError")].count("\n")
    with pytest.raises(ValueError, match=r"^no such number$") as caught:
        failing(FAILING)
    assert f'{tmp_path / "usr_failing"}/__init__.py", line {line}, in pairs' in str(caught.value.__cause__)


def test_a_source_that_cannot_be_sent_to_a_worker_is_named(failing, capsys):
    code = "    def __init__(self):\n        self.places = lambda n: n\n"
    assert failing(FAILING.replace("class Failing(Source):\n", f"class Failing(Source):\n{code}")) == 1
    assert "usr_failing.Failing: cannot be pickled" in capsys.readouterr().err
