"""t2t-datagen: its data and table, its errors, and Apache Beam."""

import gzip
import logging
import sys
from functools import partial
from types import SimpleNamespace

import pytest

from t2t_revival import T2TError, registry
from t2t_revival.cli import trainer
from t2t_revival.cli.support import problem_flags
from tests.cli.conftest import failure
from tests.support.line_corpus import write_pairs
from tests.support.processes import run_command

run = partial(run_command, "t2t-datagen")


@pytest.fixture
def corpus(tmp_path):
    pairs = [(f"{n} dogs see the {n * n} dogs", f"{n} Hunde see the {n * n} Hunde") for n in range(60)]
    return write_pairs(tmp_path / "corpus", {"train": pairs, "dev": pairs[:4]})


def generate(corpus, data, *more):
    return run("--problem=translate_ende", f"--data_source={corpus}", f"--data_dir={data}", *more)


def test_a_corpus_becomes_data_with_a_table_and_the_next_command(corpus, tmp_path, capsys):
    data = tmp_path / "data"
    assert generate(corpus, data, "--vocab_size=300") == 0
    out, err = capsys.readouterr()
    assert (data / "translate_ende-train-00009-of-00010").is_file()
    table = [line.split() for line in out.splitlines()[:3]]
    assert [row[:4] for row in table[1:]] == [["train", "60", "0", "10"], ["dev", "4", "0", "1"]]
    assert f"300 pieces, {data}/vocab.translate_ende.300.spm" in out
    assert out.splitlines()[-1] == f"t2t-trainer --problem=translate_ende --data_dir={data}"
    assert "learning the vocabulary" in err
    assert "64 pairs in 0:" in err


@pytest.mark.parametrize("flag", ["--data_source={corpus}", ""])
def test_an_edited_corpus_stops_both_commands_until_it_is_overwritten(flag, corpus, tmp_path, capsys):
    data = tmp_path / "data"
    generate(corpus, data, "--vocab_size=300")
    file = corpus / "train.de"
    file.write_text(file.read_text().replace("Hunde", "Katze"))
    common = ["--problem=translate_ende", f"--data_dir={data}", *filter(None, [flag.format(corpus=corpus)])]
    capsys.readouterr()
    training = ["t2t-trainer", *common, "--hparams_set=tiny", f"--output_dir={tmp_path / 'out'}"]
    for status in (run(*common), trainer.main(training)):
        assert status == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert f"{file} has other content of the same size" in line
        assert "by t2t-datagen with the same flags and --overwrite, or give another --data_dir" in line
    assert run(*common, "--vocab_size=300", "--overwrite") == 0
    assert run(*common) == 0
    pairs = registry.problem("translate_ende").open(data).text("train")
    assert all("Katze" in target for _, target in pairs)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("there", [False, True])
def test_a_failure_leaves_no_empty_folders(there, corpus, tmp_path, capsys):
    """The corpus is packed."""
    data = tmp_path / "new" / "data"
    if there:
        data.mkdir(parents=True)
    (corpus / "train.en.gz").write_bytes(gzip.compress((corpus / "train.en").read_bytes()))
    (corpus / "train.en").unlink()
    flags = "--problem=translate_ende", f"--data_source={corpus}", f"--data_dir={data}"
    for size in ("30000", "3"):
        assert "--vocab_size=3" in failure(capsys, run(*flags, f"--vocab_size={size}"))
    assert data.parent.exists() == there
    assert not there or not any(data.iterdir())


@pytest.mark.parametrize(("stage", "kept"), [("reading", False), ("vocabulary", False), ("pairs", True)])
def test_an_interruption_says_that_the_same_command_resumes(
    stage, kept, corpus, tmp_path, capsys, monkeypatch
):
    data = tmp_path / "data"

    def interrupt(bar, now, done, total):
        if now == stage:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(problem_flags, "show_generation", interrupt)
        assert generate(corpus, data, "--vocab_size=300") == 130
    shown = capsys.readouterr().err.splitlines()
    line = f"finished shards are kept, and listed in {data}/.translate_ende.unfinished"
    assert (f"{line}: the same command resumes after them" in shown[:-1]) == kept
    assert data.exists() == kept
    assert generate(corpus, data, "--vocab_size=300") == 0
    assert not list(data.glob(".*"))


@pytest.mark.parametrize(
    ("flags", "runner", "options"),
    [
        ([], None, None),
        (["--runner=DirectRunner"], "DirectRunner", []),
        (
            ["--runner=FlinkRunner", '--beam_pipeline_options=parallelism=4,"experiments=a,b"'],
            "FlinkRunner",
            ["parallelism=4", "experiments=a,b"],
        ),
    ],
)
def test_the_runner_and_its_options_are_named_as_in_tfds(flags, runner, options, monkeypatch, capsys):
    asked = []

    def make(*given):
        asked.append((*given, logging.root.manager.disable))

    monkeypatch.setitem(sys.modules, "t2t_revival.data.beam", SimpleNamespace(BeamShardRunner=make))
    monkeypatch.setattr(
        problem_flags.DataFlags, "generate_data", lambda *_: (_ for _ in ()).throw(T2TError("stop"))
    )
    assert run("--problem=translate_ende", *flags) == 1
    assert asked == ([] if runner is None else [(runner, options, logging.WARNING)])
    assert logging.root.manager.disable == logging.NOTSET, "Beam's warnings alone are silenced"


def test_without_beam_the_way_out_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    flags = "--problem=translate_ende", f"--data_dir={tmp_path / 'data'}", "--runner=DirectRunner"
    line = failure(capsys, run(*flags))
    assert "--runner=DirectRunner needs apache_beam" in line
    assert not (tmp_path / "data").exists()
    assert logging.root.manager.disable == logging.NOTSET
